/* rte_dev_event_callback_register is stable in later versions. */
#define ALLOW_EXPERIMENTAL_API

#include "shim.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_udp.h>

#define VLAN_ID 0xfff /* bits of a tag that contain the VLAN's number (IEEE 802.1Q) */

/* -------- devices -------- */

int urdma_probe(const char *devargs, const char *name, uint16_t *id)
{
	int ret = rte_dev_probe(devargs);

	if (ret < 0 && ret != -EEXIST)
		return ret;
	if (rte_eth_dev_get_port_by_name(name, id) != 0)
		return -ENODEV;
	return 0;
}

/* -------- opening -------- */

/* make_pool is rte_pktmbuf_pool_create with flags. Software devices need no physically contiguous buffers.
 * Requesting them anyway costs a whole 4 KiB page for each buffer without huge pages, and breaks af_xdp,
 * which takes the pool's size to be the number of buffers times their size. */
static int make_pool(struct urdma_queue *q, const struct urdma_open *o)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	unsigned frame = RTE_MAX(q->room + RTE_ETHER_CRC_LEN + 4U, (unsigned)o->min_room);
	/* Many NICs use only whole KiB of a buffer, and would split a frame. */
	unsigned room = RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(frame, o->software ? 64U : 1024U);
	struct rte_pktmbuf_pool_private priv = { .mbuf_data_room_size = room };
	unsigned flags = o->software ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	int ret;

	snprintf(name, sizeof(name), "urdma_%u_%u", q->port, q->index);
	q->pool = rte_mempool_create_empty(name, o->buffers, sizeof(struct rte_mbuf) + room, 256,
					   sizeof(priv), SOCKET_ID_ANY, flags);
	if (q->pool == NULL)
		return -rte_errno;
	ret = rte_mempool_set_ops_byname(q->pool, rte_mbuf_best_mempool_ops(), NULL);
	if (ret != 0)
		return ret;
	rte_pktmbuf_pool_init(q->pool, &priv);
	ret = rte_mempool_populate_default(q->pool);
	if (ret < 0)
		return ret;
	rte_mempool_obj_iter(q->pool, rte_pktmbuf_init, NULL);
	return 0;
}

/* Each offload is enabled if the device offers it: virtio offers no IPv4 checksum. */
static void choose_offloads(struct urdma_port *p, const struct rte_eth_dev_info *info,
			    struct rte_eth_conf *conf)
{
	conf->rxmode.offloads = info->rx_offload_capa & (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM);
	conf->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	for (unsigned i = 0; i < p->queues; i++) {
		p->queue[i].rx_checksum = conf->rxmode.offloads != 0;
		p->queue[i].tx_udp = conf->txmode.offloads != 0;
	}
	if (p->queue[0].vlan != 0)
		conf->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
}

/* admit_vlan: a device with a VLAN filter may have it enabled, and then accepts only the VLANs that it was
 * told (virtio). */
static int admit_vlan(const struct urdma_port *p, const struct rte_eth_conf *conf)
{
	if ((conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) == 0)
		return 0;
	return rte_eth_dev_vlan_filter(p->id, p->queue[0].vlan, 1);
}

/* spread makes a device choose queues by a hash of UDP packets' addresses and port numbers, if it can:
 * with our key, or with its own. Other packets go to queue 0. */
static void spread(struct urdma_port *p, const struct rte_eth_dev_info *info, const struct urdma_open *o,
		   struct rte_eth_conf *conf, bool our_key)
{
	struct rte_eth_rss_conf *rss = &conf->rx_adv_conf.rss_conf;
	unsigned len = info->hash_key_size != 0 ? info->hash_key_size : sizeof(o->rss_key);

	memset(rss, 0, sizeof(*rss));
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	if (p->queues > 1)
		rss->rss_hf = info->flow_type_rss_offloads & (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	if (rss->rss_hf != 0)
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	p->rss = rss->rss_hf != 0 && our_key && len >= sizeof(o->rss_key) && len <= sizeof(p->rss_key);
	if (!p->rss)
		return;
	/* the rest of a longer key is 0: it is for headers that we don't use */
	memcpy(p->rss_key, o->rss_key, sizeof(o->rss_key));
	rss->rss_key = p->rss_key;
	rss->rss_key_len = len;
}

/* redirect sets the queue for each value of the hash. Returns false for a device without a writable table,
 * which chooses queues in its own way. */
static bool redirect(const struct urdma_port *p, const struct urdma_open *o)
{
	struct rte_eth_rss_reta_entry64 table[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE];
	struct rte_eth_dev_info info;
	unsigned i;

	if (rte_eth_dev_info_get(p->id, &info) != 0 || info.reta_size == 0 || info.reta_size > RTE_ETH_RSS_RETA_SIZE_512)
		return false;
	memset(table, 0, sizeof(table));
	for (i = 0; i < info.reta_size; i++) {
		struct rte_eth_rss_reta_entry64 *t = &table[i / RTE_ETH_RETA_GROUP_SIZE];

		t->mask |= UINT64_C(1) << i % RTE_ETH_RETA_GROUP_SIZE;
		t->reta[i % RTE_ETH_RETA_GROUP_SIZE] = o->rss_queue[i % sizeof(o->rss_queue)];
	}
	return rte_eth_dev_rss_reta_update(p->id, table, info.reta_size) == 0;
}

/* configure first requests receive interrupts; drivers without them refuse either here or when the first
 * one is enabled. Some drivers refuse a key. */
static int configure(struct urdma_port *p, const struct rte_eth_dev_info *info,
		     const struct urdma_open *o, struct rte_eth_conf *conf)
{
	int tries = p->queues > 1 ? 4 : 2;
	int ret = 0;

	conf->rxmode.mtu = o->borrowed ? RTE_MIN(p->mtu, RTE_ETHER_MTU) : p->mtu;
	choose_offloads(p, info, conf);
	for (int i = 0; i < tries; i++) {
		spread(p, info, o, conf, i < 2);
		p->rx_interrupt = conf->intr_conf.rxq = i % 2 == 0;
		ret = rte_eth_dev_configure(p->id, p->queues, p->queues, conf);
		if (ret == 0)
			return 0;
	}
	if (p->queues == 1)
		return ret;
	p->queues = 1;
	return configure(p, info, o, conf);
}

static int set_queues(struct urdma_port *p, const struct urdma_open *o)
{
	for (unsigned i = 0; i < p->queues; i++) {
		int ret = rte_eth_rx_queue_setup(p->id, i, o->rx_desc, SOCKET_ID_ANY, NULL, p->queue[i].pool);

		if (ret == 0)
			ret = rte_eth_tx_queue_setup(p->id, i, o->tx_desc, SOCKET_ID_ANY, NULL);
		if (ret != 0)
			return ret;
	}
	return 0;
}

/* find_queues: e1000_em reports two queues also for devices with one, and then nothing leaves through the
 * second. */
static void find_queues(struct urdma_port *p, const struct rte_eth_dev_info *info, const struct urdma_open *o)
{
	bool enough = info->max_rx_queues >= o->queues && info->max_tx_queues >= o->queues;

	p->queues = enough && strcmp(info->driver_name, "net_e1000_em") != 0 ? o->queues : 1;
	for (unsigned i = 0; i < p->queues; i++) {
		struct urdma_queue *q = &p->queue[i];

		q->port = p->id;
		q->index = i;
		q->vlan = o->vlan;
		q->room = p->mtu + RTE_ETHER_HDR_LEN;
	}
}

/* find_mtu is called before the device is configured, and sets p->mtu. */
static int find_mtu(struct urdma_port *p, const struct rte_eth_dev_info *info, const struct urdma_open *o)
{
	p->mtu = o->mtu;
	if (o->borrowed)
		return 0;
	if (o->mtu == 0)
		return rte_eth_dev_get_mtu(p->id, &p->mtu);
	return o->mtu > info->max_mtu ? -ERANGE : 0;
}

/* set_mtu is called after the device is configured, as ethdev requires. Drivers without a notion of MTU
 * carry frames that fit their buffers. */
static int set_mtu(struct urdma_port *p, const struct urdma_open *o)
{
	int ret = o->borrowed || o->mtu == 0 ? 0 : rte_eth_dev_set_mtu(p->id, p->mtu);

	return ret == -ENOTSUP ? 0 : ret;
}

static void set_address(struct urdma_port *p, const struct urdma_open *o)
{
	struct rte_ether_addr mac;

	memset(&mac, 0, sizeof(mac));
	rte_eth_macaddr_get(p->id, &mac);
	memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
	if (!o->want_mac || memcmp(p->mac, o->mac, sizeof(p->mac)) == 0)
		return;
	memcpy(mac.addr_bytes, o->mac, sizeof(mac.addr_bytes));
	if (o->borrowed || rte_eth_dev_default_mac_addr_set(p->id, &mac) != 0)
		p->mac_kept = 1;
	memcpy(p->mac, o->mac, sizeof(p->mac));
}

/* device_event is called on an EAL thread. vfio-pci requests the device back when it is unbound or
 * unplugged, and waits until it is closed. */
static void device_event(const char *name __rte_unused, enum rte_dev_event_type event, void *port)
{
	struct urdma_port *p = port;

	if (event == RTE_DEV_EVENT_REMOVE)
		for (unsigned i = 0; i < p->queues; i++)
			__atomic_store_n(&p->queue[i].leaving, 1, __ATOMIC_RELEASE);
}

int urdma_port_open(struct urdma_port *p, const struct urdma_open *o, const char **step)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	int ret;

	memset(&conf, 0, sizeof(conf));
	*step = "rte_eth_dev_info_get";
	if ((ret = rte_eth_dev_info_get(p->id, &info)) != 0)
		return ret;
	*step = "rte_eth_dev_set_mtu";
	if ((ret = find_mtu(p, &info, o)) != 0)
		return ret;
	find_queues(p, &info, o);
	*step = "rte_pktmbuf_pool_create";
	for (unsigned i = 0; i < p->queues; i++)
		if ((ret = make_pool(&p->queue[i], o)) != 0)
			return ret;
	*step = "rte_eth_dev_configure";
	if ((ret = configure(p, &info, o, &conf)) != 0)
		return ret;
	*step = "rte_eth_dev_set_mtu";
	if ((ret = set_mtu(p, o)) != 0)
		return ret;
	*step = "queue setup";
	if ((ret = set_queues(p, o)) != 0)
		return ret;
	set_address(p, o);
	*step = "rte_eth_dev_start";
	if ((ret = rte_eth_dev_start(p->id)) != 0)
		return ret;
	p->rss = p->rss && redirect(p, o);
	*step = "rte_eth_dev_vlan_filter";
	if ((ret = admit_vlan(p, &conf)) != 0)
		return ret;
	if (p->mac_kept && !o->borrowed)
		rte_eth_promiscuous_enable(p->id);
	if (!o->borrowed)
		rte_eth_allmulticast_enable(p->id); /* for multicast; a driver without a filter does not have this call */
	for (unsigned i = 0; i < p->queues && p->rx_interrupt; i++) {
		struct urdma_queue *q = &p->queue[i];

		if (urdma_interrupt_fd(q) < 0 || urdma_interrupt(q, 1) != 0)
			p->rx_interrupt = 0;
		else
			urdma_interrupt(q, 0);
	}
	rte_dev_event_callback_register(rte_dev_name(info.device), device_event, p);
	return 0;
}

void urdma_device_close(struct urdma_port *p)
{
	struct rte_eth_dev_info info;
	bool known = rte_eth_dev_info_get(p->id, &info) == 0;

	if (p->device_closed)
		return;
	p->device_closed = 1;
	if (known)
		rte_dev_event_callback_unregister(rte_dev_name(info.device), device_event, p);
	rte_eth_dev_stop(p->id);
	if (known)
		rte_dev_remove(info.device); /* also closes the port */
	else
		rte_eth_dev_close(p->id);
}

void urdma_port_close(struct urdma_port *p)
{
	urdma_device_close(p);
	for (unsigned i = 0; i < URDMA_QUEUES; i++) { /* including those of queues that configure gave up */
		rte_mempool_free(p->queue[i].pool);
		p->queue[i].pool = NULL;
	}
}

/* -------- bursts -------- */

static uint32_t flags_of(const struct rte_mbuf *m)
{
	uint32_t f = 0;

	switch (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) {
	case RTE_MBUF_F_RX_IP_CKSUM_NONE: /* treated as good: the header has no checksum and was not damaged */
	case RTE_MBUF_F_RX_IP_CKSUM_GOOD: f |= URDMA_IPV4_GOOD; break;
	case RTE_MBUF_F_RX_IP_CKSUM_BAD: f |= URDMA_IPV4_BAD; break;
	}
	switch (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) {
	/* the sender was another VM: a checksum is computed only when the frame leaves for a wire */
	case RTE_MBUF_F_RX_L4_CKSUM_NONE:
	case RTE_MBUF_F_RX_L4_CKSUM_GOOD: f |= URDMA_UDP_GOOD; break;
	case RTE_MBUF_F_RX_L4_CKSUM_BAD: f |= URDMA_UDP_BAD; break;
	}
	return f;
}

/* untag removes a frame's tag, unless the driver has done that; returns false for a frame of another VLAN. */
static bool untag(const struct urdma_queue *q, struct rte_mbuf *m)
{
	if (!(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) &&
	    (m->data_len < RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN || rte_vlan_strip(m) != 0))
		return false;
	return (m->vlan_tci & VLAN_ID) == q->vlan;
}

unsigned urdma_rx(struct urdma_queue *q, unsigned n)
{
	struct rte_mbuf *m[URDMA_BURST];
	unsigned got, kept = 0;

	if (__atomic_load_n(&q->leaving, __ATOMIC_RELAXED) != 0) {
		__atomic_store_n(&q->left, 1, __ATOMIC_RELEASE);
		return 0;
	}
	got = rte_eth_rx_burst(q->port, q->index, m, n);
	for (unsigned i = 0; i < got; i++) {
		if (q->vlan != 0 && !untag(q, m[i])) {
			rte_pktmbuf_free(m[i]);
			continue;
		}
		/* The pool's buffers hold whole frames, but the driver may use less of each buffer and split a
		 * frame. A frame longer than the MTU allows is dropped. */
		if (m[i]->pkt_len > q->room || (m[i]->nb_segs != 1 && rte_pktmbuf_linearize(m[i]) != 0)) {
			rte_pktmbuf_free(m[i]);
			q->rx_bad++;
			continue;
		}
		q->burst[kept++] = (struct urdma_packet){
			.mbuf = m[i],
			.data = rte_pktmbuf_mtod(m[i], void *),
			.len = m[i]->data_len,
			.flags = q->rx_checksum ? flags_of(m[i]) : 0,
		};
	}
	return kept;
}

unsigned urdma_alloc(struct urdma_queue *q, unsigned n)
{
	struct rte_mbuf *m[URDMA_BURST];

	/* The bulk call allocates all or none. */
	while (n > 0 && rte_pktmbuf_alloc_bulk(q->pool, m, n) != 0)
		n /= 2;
	for (unsigned i = 0; i < n; i++) {
		q->burst[i].mbuf = m[i];
		q->burst[i].data = rte_pktmbuf_mtod(m[i], void *);
	}
	return n;
}

static struct rte_udp_hdr *udp_behind(struct rte_mbuf *m, uint16_t l3)
{
	if (m->data_len < RTE_ETHER_HDR_LEN + l3 + sizeof(struct rte_udp_hdr))
		return NULL;
	return rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, RTE_ETHER_HDR_LEN + l3);
}

/* offload leaves the UDP checksum to the driver, which needs the pseudo-header's sum in the field. A frame
 * that could not be sent comes here again. */
static void offload(struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)(eth + 1);
	struct rte_udp_hdr *udp;
	bool six = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6);
	uint16_t l3;

	if (m->ol_flags & RTE_MBUF_F_TX_UDP_CKSUM)
		return;
	if (!six && eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return;
	if (m->data_len < sizeof(*eth) + (six ? sizeof(*ip6) : sizeof(*ip)))
		return;
	if ((six ? ip6->proto : ip->next_proto_id) != IPPROTO_UDP)
		return;
	l3 = six ? sizeof(*ip6) : rte_ipv4_hdr_len(ip);
	udp = udp_behind(m, l3);
	if (udp == NULL || udp->dgram_cksum != 0)
		return;
	m->l2_len = sizeof(*eth);
	m->l3_len = l3;
	m->ol_flags |= (six ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4) | RTE_MBUF_F_TX_UDP_CKSUM;
	udp->dgram_cksum = six ? rte_ipv6_phdr_cksum(ip6, m->ol_flags) : rte_ipv4_phdr_cksum(ip, m->ol_flags);
}

/* tag inserts our VLAN's tag into a frame; untagged removes it from one that was not sent. */
static void tag(const struct urdma_queue *q, struct rte_mbuf **m)
{
	(*m)->vlan_tci = q->vlan;
	rte_vlan_insert(m); /* fails only without headroom, which all our buffers have */
}

static void untagged(struct rte_mbuf *m)
{
	rte_vlan_strip(m);
	m->l2_len = RTE_ETHER_HDR_LEN;
}

unsigned urdma_tx(struct urdma_queue *q, unsigned n)
{
	struct rte_mbuf *m[URDMA_BURST];
	unsigned sent;

	if (__atomic_load_n(&q->leaving, __ATOMIC_RELAXED) != 0)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		m[i] = q->burst[i].mbuf;
		m[i]->data_len = q->burst[i].len;
		m[i]->pkt_len = q->burst[i].len;
		if (q->tx_udp)
			offload(m[i]);
		if (q->vlan != 0)
			tag(q, &m[i]);
	}
	sent = rte_eth_tx_burst(q->port, q->index, m, n);
	for (unsigned i = sent; q->vlan != 0 && i < n; i++)
		untagged(m[i]);
	return sent;
}

void urdma_free(struct urdma_queue *q, unsigned n)
{
	struct rte_mbuf *m[URDMA_BURST];

	for (unsigned i = 0; i < n; i++)
		m[i] = q->burst[i].mbuf;
	rte_pktmbuf_free_bulk(m, n);
}

/* -------- the rest -------- */

int urdma_link(uint16_t id)
{
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(id, &link) != 0)
		return 0;
	return link.link_status == RTE_ETH_LINK_UP;
}

int urdma_counters(uint16_t id, struct urdma_counters *c)
{
	struct rte_eth_stats s;
	int ret = rte_eth_stats_get(id, &s);

	if (ret != 0)
		return ret;
	*c = (struct urdma_counters){ s.imissed, s.ierrors, s.rx_nombuf };
	return 0;
}

int urdma_interrupt_fd(const struct urdma_queue *q)
{
	return rte_eth_dev_rx_intr_ctl_q_get_fd(q->port, q->index);
}

int urdma_interrupt(const struct urdma_queue *q, int on)
{
	if (__atomic_load_n(&q->leaving, __ATOMIC_RELAXED) != 0)
		return 0;
	return on ? rte_eth_dev_rx_intr_enable(q->port, q->index)
		  : rte_eth_dev_rx_intr_disable(q->port, q->index);
}

/* The stream stays open until the process ends, because EAL threads may log to it at any time. */
static FILE *log_stream;

int urdma_log_to(int fd)
{
	FILE *f = fdopen(fd, "w");

	if (f == NULL)
		return -errno;
	setvbuf(f, NULL, _IOLBF, 4096);
	log_stream = f;
	return rte_openlog_stream(f);
}

void urdma_log_mark(const char *text)
{
	if (log_stream != NULL) {
		fputs(text, log_stream);
		fflush(log_stream);
	}
}

const char *urdma_errno_text(int e)
{
	return rte_strerror(e);
}

int urdma_errno(void)
{
	return rte_errno;
}
