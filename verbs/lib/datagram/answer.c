/* answer.c - address handles for replies to the sender of a datagram. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#include "ah.h"

#define IPV4_AT 20 /* offset of the IPv4 header in the 40 bytes before a datagram */

static int from_ipv6(const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	uint32_t start = ntohl(grh->version_tclass_flow);

	attr->grh.dgid = grh->sgid;
	attr->is_global = 1;
	attr->grh.hop_limit = grh->hop_limit;
	attr->grh.traffic_class = (uint8_t)(start >> 20);
	attr->grh.flow_label = start & 0xfffff;
	return 0;
}

/* Reads the header that came with the datagram in RoCEv2's layout: an IPv6 header, or 20 unused bytes and
 * an IPv4 header. */
static int from_header(const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct iphdr ip;

	if (ntohl(grh->version_tclass_flow) >> 28 == 6)
		return from_ipv6(grh, attr);
	memcpy(&ip, (const uint8_t *)grh + IPV4_AT, sizeof(ip));
	if (ip.version != 4 || ip.ihl != 5)
		return EPROTONOSUPPORT;
	urdma_map_ipv4(attr->grh.dgid.raw, &ip.saddr);
	attr->is_global = 1;
	attr->grh.hop_limit = ip.ttl;
	attr->grh.traffic_class = ip.tos;
	return 0;
}

URDMA_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
				     struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	int status = urdma_port_info(context, port) ? 0 : EINVAL;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	if (!status && (wc->wc_flags & IBV_WC_GRH))
		status = from_header(grh, attr);
	if (!status)
		return 0;
	return urdma_fail(status);
}

URDMA_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
						  uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
