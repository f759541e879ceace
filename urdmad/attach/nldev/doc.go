// Package nldev answers as the kernel's NETLINK_RDMA does (nldev): iproute2's rdma, run by urdma exec,
// shows urdmad's devices, ports, counters and the objects that its user may see. liburdma.so makes a
// program's netlink socket a connection to this package. Everything is read only.
//
// message.go has the format of requests and answers, device.go answers about devices and ports from the
// tree that stands for /sys, object.go about objects from a snapshot. Numbers are those of the kernel's
// enum rdma_nldev_attr and rdma_nldev_command.
package nldev
