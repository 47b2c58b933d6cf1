"""What answers: engines turn a neutral prompt into events; everything about HTTP and endpoints is the app's."""
