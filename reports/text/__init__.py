"""Tables, bars and sentences for the console, and their forms in Markdown, JSON and XML."""
