// Package umad serves the devices that stand for /dev/infiniband/umadN and issmN. Each open file
// is a connection, over which liburdma.so passes a program's writes and ioctl arguments, and gets
// the data that the program reads. Structures and numbers are those of the kernel's user_mad.
//
// server.go has the files and passes MADs on, file.go the messages of one file, agent.go selects
// the agent for a MAD. The subnet itself is package fabric.
package umad
