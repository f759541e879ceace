// Package programs runs programs and scripts that find RDMA devices by themselves
// on a real urdmad: through sysfs, device nodes, the addresses of interfaces, or a
// library that they load while they run.
package programs
