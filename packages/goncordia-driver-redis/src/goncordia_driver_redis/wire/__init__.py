"""What goes over the wire: jobs, requests and answers as bytes."""
