// Package umad serves what stands for /dev/infiniband/umadN and issmN: a connection for
// each open file, over which liburdma.so sends what a program writes and the arguments of
// its ioctls, and reads what the program reads. Structures and numbers are those of the
// kernel for user_mad.
//
// server.go has the files and where MADs go, file.go what comes over one, agent.go which
// agent gets what. The subnet itself is package fabric.
package umad
