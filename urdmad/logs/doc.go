// Package logs keeps logging from holding up the threads that log. Lines come from the poll
// loop too, often because a stranger sent something: Limit bounds how many of a
// kind there are, and Queue takes them without waiting for their reader.
package logs
