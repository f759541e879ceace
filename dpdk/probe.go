package dpdk

/*
#include <stdlib.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include "shim.h"
*/
import "C"

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"unsafe"

	"urdma/dpdk/netdev"
	"urdma/dpdk/port"
)

// openDevice probes a DPDK device, checks that it became a port, and starts it.
func (s *Spec) openDevice(log *slog.Logger) (port.Port, error) {
	d, err := s.prepare()
	if err != nil {
		return nil, err
	}
	if d.warning != "" {
		log.Warn(d.warning, "port", s.label())
	}
	p, err := s.openPrepared(d)
	if err != nil {
		d.undoBorrow()
		return nil, err
	}
	if d.borrowed != nil {
		d.borrowed.remember()
	}
	if err := p.followLink(d.borrowed, log); err != nil {
		return nil, errors.Join(fmt.Errorf("dpdk: port %q: %w", s.label(), err), p.Close())
	}
	return p, nil
}

func (s *Spec) openPrepared(d prepared) (*ethPort, error) {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	eal.log.begin()
	before := packetSockets()
	id, err := s.probe(d.args)
	if err != nil {
		return nil, err
	}
	p := &ethPort{
		c: (*C.struct_urdma_port)(C.calloc(1, C.sizeof_struct_urdma_port)),
	}
	p.c.id = id
	if err := s.start(p, &d); err != nil {
		if d.program.ID != 0 {
			eal.kept.Store(true)
			return nil, err
		}
		C.urdma_port_close(p.c)
		C.free(unsafe.Pointer(p.c))
		return nil, err
	}
	if err := p.finish(s, before); err != nil {
		return nil, errors.Join(fmt.Errorf("dpdk: port %q: %w", s.label(), err), p.Close())
	}
	return p, nil
}

func (s *Spec) probe(device string) (id C.uint16_t, err error) {
	cdev, cname := C.CString(device), C.CString(s.base())
	defer C.free(unsafe.Pointer(cdev))
	defer C.free(unsafe.Pointer(cname))
	if ret := C.urdma_probe(cdev, cname, &id); ret != 0 {
		return 0, fmt.Errorf("dpdk: port %q: device %s was not opened: %s%s; %s",
			s.label(), device, C.GoString(C.urdma_errno_text(-ret)), eal.log.tail(), advice(device))
	}
	return id, nil
}

// fit returns the pool that a device needs, within its driver's limits.
func (s *Spec) fit(id C.uint16_t, d *prepared) (pool, error) {
	p := s.pool()
	p.minRoom = d.minRoom
	rx, tx := C.uint16_t(p.rxDesc), C.uint16_t(p.txDesc)
	var info C.struct_rte_eth_dev_info
	ret := C.rte_eth_dev_info_get(id, &info)
	if ret == 0 {
		ret = C.rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx)
	}
	if ret != 0 {
		return p, fmt.Errorf("rte_eth_dev_info_get failed: %s", C.GoString(C.urdma_errno_text(-ret)))
	}
	p.rxDesc, p.txDesc = int(rx), int(tx)
	return p, p.setRoom(int(info.min_rx_bufsize), s.PCI == "")
}

func (s *Spec) start(p *ethPort, d *prepared) error {
	pool, err := s.fit(p.c.id, d)
	if err != nil {
		return fmt.Errorf("dpdk: port %q: %s: %w", s.label(), s.device(), err)
	}
	o := C.struct_urdma_open{
		mtu: C.uint16_t(d.mtu), min_room: C.uint16_t(pool.minRoom), buffers: C.uint32_t(pool.buffers()),
		rx_desc: C.uint16_t(pool.rxDesc), tx_desc: C.uint16_t(pool.txDesc), vlan: C.uint16_t(s.VLAN), queues: 1,
	}
	if s.PCI == "" {
		o.software = 1
	}
	if s.PCI != "" || driverOf(s.Vdev) == "net_tap" {
		o.queues = C.uint16_t(min(max(s.Queues, 1), C.URDMA_QUEUES))
	}
	for i, b := range rssKey(s.BySource, s.Address.Is6()) {
		o.rss_key[i] = C.uint8_t(b)
	}
	for i, q := range rssTable(s.QueueOf) {
		o.rss_queue[i] = C.uint8_t(q)
	}
	if d.borrowed != nil {
		o.borrowed = 1
	}
	if s.MAC != [6]byte{} {
		o.want_mac = 1
		for i, b := range s.MAC {
			o.mac[i] = C.uint8_t(b)
		}
	}
	var step *C.char
	ret, errno := C.urdma_port_open(p.c, &o, &step)
	if ret == 0 {
		return nil
	}
	failed := C.GoString(step)
	if failed == queueSetup {
		d.lookAgain()
	}
	err = fmt.Errorf("dpdk: port %q: %s: %s failed: %s%s; %s",
		s.label(), s.device(), failed, C.GoString(C.urdma_errno_text(-ret)), eal.log.tail(),
		startAdvice(failed, s, d, pool.buffers()))
	if failed == queueSetup && d.busy(errno) {
		return &BusyError{err}
	}
	return err
}

// queueSetup is the step of urdma_port_open in which a driver attaches to the interface.
const queueSetup = "queue setup"

// startAdvice returns advice for a failed step of starting a port.
func startAdvice(step string, s *Spec, d *prepared, buffers int) string {
	if d.program.ID != 0 && step == queueSetup {
		return fmt.Sprintf("network interface %s has an XDP program (id %d) of somebody else: end the process that uses "+
			"the interface, such as another urdmad, or, if there is none, remove the program: "+
			"\"ip link set dev %s %s off\"", d.iface, d.program.ID, d.iface, d.program.Mode)
	}
	switch step {
	case "rte_pktmbuf_pool_create":
		return fmt.Sprintf("the EAL has too little memory for %d buffers: give it more with -m (or huge pages)", buffers)
	case "rte_eth_dev_set_mtu":
		return "the device can't carry this MTU: choose a smaller one, or for af_packet a larger framesz"
	}
	return advice(s.device())
}

// finish fills in the properties that are known once the port runs.
func (p *ethPort) finish(s *Spec, before map[int]bool) (err error) {
	var info C.struct_rte_eth_dev_info
	C.rte_eth_dev_info_get(p.c.id, &info)
	p.info = port.Info{
		Name: s.label(), Driver: C.GoString(info.driver_name), MTU: int(p.c.mtu),
		TxUDPChecksum: p.c.queue[0].tx_udp != 0, TxUDP6Checksum: p.c.queue[0].tx_udp != 0, Wire: true,
	}
	for i := range p.info.MAC {
		p.info.MAC[i] = byte(p.c.mac[i])
	}
	if p.info.MAC == [6]byte{} {
		rand.Read(p.info.MAC[:])
		p.info.MAC[0] = p.info.MAC[0]&^1 | 2
	}
	p.rss = p.c.rss != 0
	p.ifIndex, p.software = uint32(info.if_index), s.PCI == ""
	if p.ifIndex != 0 {
		p.info.Interface = netdev.Name(p.ifIndex)
	}
	p.queues = make([]ethQueue, p.c.queues)
	for i := range p.queues {
		q := &p.queues[i]
		q.c = &p.c.queue[i]
		q.room = int(q.c.room)
		q.burst = unsafe.Slice(&q.c.burst[0], C.URDMA_BURST)
		q.link, q.gone = &p.link, &p.gone
		if q.wake, err = p.findWake(q.c, before); err != nil {
			return err
		}
	}
	return nil
}
