// Package programs runs programs and scripts on a real urdmad that find RDMA devices by themselves: through sysfs,
// device nodes, the addresses of interfaces, or a library that they load at run time.
package programs
