/* The C part of package dpdk: functions that can't be called from Go because they are inline or macros, or
 * that would need a cgo call for each packet. */
#ifndef URDMA_DPDK_SHIM_H
#define URDMA_DPDK_SHIM_H

#include <stdint.h>
#include <stdio.h>

/* Maximum packets of one burst; longer slices are split in Go. */
#define URDMA_BURST 256
/* Maximum queues of a port. */
#define URDMA_QUEUES 8
/* Bytes of the key for receive side scaling. */
#define URDMA_RSS_KEY 40

#define URDMA_IPV4_BAD 1
#define URDMA_UDP_BAD 2
#define URDMA_IPV4_GOOD 4
#define URDMA_UDP_GOOD 8

/* One packet, as passed between Go and C. */
struct urdma_packet {
	void *mbuf;
	void *data;
	uint32_t len;
	uint32_t flags; /* URDMA_… on receive */
};

/* One queue of an open port, both directions. Owned by one Go queue and its worker. */
struct urdma_queue {
	struct rte_mempool *pool;
	uint16_t port, index;
	uint16_t room;        /* bytes of the largest frame */
	uint16_t tx_udp;      /* the driver computes UDP checksums */
	uint16_t rx_checksum; /* the driver verifies checksums */
	uint16_t vlan;        /* VLAN of frames on the wire; 0: frames have no tag */
	uint64_t rx_bad;      /* received and dropped because they were too long */
	uint32_t leaving;     /* the kernel requests the device back; atomic */
	uint32_t left;        /* the worker has seen that and no longer uses the device; atomic */
	struct urdma_packet burst[URDMA_BURST];
};

/* One open port. Made by urdma_port_open, owned by one Go port. */
struct urdma_port {
	uint16_t id;
	uint16_t rx_interrupt; /* the driver has receive interrupts */
	uint16_t mtu;
	uint8_t mac[6];
	uint8_t mac_kept; /* the device's address is not the configured one */
	uint8_t device_closed;
	uint8_t rss; /* the device accepted our key and table for receive side scaling */
	uint8_t rss_key[64];
	uint16_t queues;
	struct urdma_queue queue[URDMA_QUEUES];
};

/* Parameters for opening a port. mtu 0: the device's own. */
struct urdma_open {
	uint16_t mtu;
	/* The port uses a network interface of the kernel's, which others use, too: its MTU is large enough,
	 * its address and flags are not changed. */
	uint16_t borrowed;
	uint16_t min_room;    /* bytes a pool buffer needs after its headroom, if more than a frame */
	uint16_t software;    /* no DMA: the pool need not be physically contiguous */
	uint16_t rx_desc, tx_desc;
	uint16_t vlan; /* 0: none */
	uint16_t queues; /* 1 to URDMA_QUEUES; a device that supports fewer gets one */
	uint32_t buffers; /* for each queue */
	uint8_t mac[6];
	uint8_t want_mac;
	/* If there are several queues: the key of the device's hash, and the queue for each value of its
	 * lowest three bits (rss.go). */
	uint8_t rss_key[URDMA_RSS_KEY];
	uint8_t rss_queue[8];
};

struct urdma_counters {
	uint64_t imissed, ierrors, rx_nombuf;
};

/* Opens port p->id. Returns 0 or -errno; *step then names the step that failed. */
int urdma_port_open(struct urdma_port *p, const struct urdma_open *o, const char **step);
/* Closes the device before the port is closed; buffers stay valid. The workers must no longer use it. */
void urdma_device_close(struct urdma_port *p);
void urdma_port_close(struct urdma_port *p);

/* Probes a device by its argument string; returns 0 or -errno. On success *id is its port. name is the
 * device's name, the string up to the first comma. */
int urdma_probe(const char *devargs, const char *name, uint16_t *id);

/* These process q->burst[0..n) and return the number of packets done. */
unsigned urdma_rx(struct urdma_queue *q, unsigned n);
unsigned urdma_alloc(struct urdma_queue *q, unsigned n);
unsigned urdma_tx(struct urdma_queue *q, unsigned n);
void urdma_free(struct urdma_queue *q, unsigned n);

int urdma_link(uint16_t id);
int urdma_counters(uint16_t id, struct urdma_counters *c);

int urdma_interrupt_fd(const struct urdma_queue *q);
int urdma_interrupt(const struct urdma_queue *q, int on);

int urdma_log_to(int fd);
void urdma_log_mark(const char *text);
const char *urdma_errno_text(int e);
int urdma_errno(void);

#endif
