"""The SQL that the SQL drivers share (private: depend on a driver package instead)."""
