//! What is not there, and what may not be done.
