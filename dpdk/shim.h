/* The C side of package dpdk: what can't be called from Go because it is
 * inline, a macro, or would cross cgo once a packet. */
#ifndef URDMA_DPDK_SHIM_H
#define URDMA_DPDK_SHIM_H

#include <stdint.h>
#include <stdio.h>

/* Most packets of one burst; longer slices are split in Go. */
#define URDMA_BURST 256
/* Most queues of a port. */
#define URDMA_QUEUES 8
/* Bytes of a hash's key for receive side scaling. */
#define URDMA_RSS_KEY 40

#define URDMA_IPV4_BAD 1
#define URDMA_UDP_BAD 2
#define URDMA_IPV4_GOOD 4
#define URDMA_UDP_GOOD 8

/* One packet, as Go and C hand it to each other. */
struct urdma_packet {
	void *mbuf;
	void *data;
	uint32_t len;
	uint32_t flags; /* URDMA_… on receive */
};

/* One queue of an open port, both ways. Owned by one Go queue and its worker. */
struct urdma_queue {
	struct rte_mempool *pool;
	uint16_t port, index;
	uint16_t room;        /* bytes of the largest frame */
	uint16_t tx_udp;      /* the driver computes UDP checksums */
	uint16_t rx_checksum; /* the driver verifies checksums */
	uint16_t vlan;        /* of frames on the wire; 0: they have no tag */
	uint64_t rx_bad;      /* received and dropped: too long */
	uint32_t leaving;     /* the kernel wants the device back; atomic */
	uint32_t left;        /* the worker has seen that and leaves the device alone; atomic */
	struct urdma_packet burst[URDMA_BURST];
};

/* One open port. Made by urdma_port_open, owned by one Go port. */
struct urdma_port {
	uint16_t id;
	uint16_t rx_interrupt; /* the driver has receive interrupts */
	uint16_t mtu;
	uint8_t mac[6];
	uint8_t mac_kept; /* the device has another address than the wanted one */
	uint8_t device_closed;
	uint8_t rss; /* the device took our key and table for receive side scaling */
	uint8_t rss_key[64];
	uint16_t queues;
	struct urdma_queue queue[URDMA_QUEUES];
};

/* What to open. Zero mtu: the device's own. */
struct urdma_open {
	uint16_t mtu;
	/* Below is a network interface of the kernel's, which others use too: its MTU
	 * is large enough, its address and flags stay as they are. */
	uint16_t borrowed;
	uint16_t min_room;    /* bytes a pool buffer must have behind its headroom, if more than a frame */
	uint16_t software;    /* no DMA: the pool need not be physically contiguous */
	uint16_t rx_desc, tx_desc;
	uint16_t vlan; /* 0: none */
	uint16_t queues; /* 1 to URDMA_QUEUES; a device that has fewer gets one */
	uint32_t buffers; /* of each queue */
	uint8_t mac[6];
	uint8_t want_mac;
	/* With several queues: the key of the device's hash, and which queue each value of
	 * its lowest three bits means (rss.go). */
	uint8_t rss_key[URDMA_RSS_KEY];
	uint8_t rss_queue[8];
};

struct urdma_counters {
	uint64_t imissed, ierrors, rx_nombuf;
};

/* Returns 0 or -errno; *step then says what failed. p->id is the port to open. */
int urdma_port_open(struct urdma_port *p, const struct urdma_open *o, const char **step);
/* Gives the device back before the port is closed: buffers stay valid. The workers must
 * have left it. */
void urdma_device_close(struct urdma_port *p);
void urdma_port_close(struct urdma_port *p);

/* Probes a device by its argument string; 0 or -errno. On success *id is its
 * port. name is the device's name, the string up to the first comma. */
int urdma_probe(const char *devargs, const char *name, uint16_t *id);

/* Bursts work on q->burst[0..n) and return how many were done. */
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
