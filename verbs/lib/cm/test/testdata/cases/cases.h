/* cases.h - functions shared by the cases: checks that end the program, and ids in various states. */
#ifndef CASES_H
#define CASES_H

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "../fake.h"

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__,     \
				__LINE__, #condition, errno);                  \
			exit(1);                                               \
		}                                                              \
	} while (0)

#define REFUSES(call, error)                                                   \
	do {                                                                   \
		errno = 0;                                                     \
		CHECK((call) == -1 && errno == (error));                       \
	} while (0)

struct sockaddr_in address(const char *text, uint16_t port);
uint32_t handle_of(struct rdma_cm_id *id);
void send_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);
/* Reads the next event, which must have this type, and acknowledges it. */
void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* Return an id with a route to 10.0.0.2, and a connected one; channel may be NULL. */
struct rdma_cm_id *resolved(struct rdma_event_channel *channel);
struct rdma_cm_id *connected(struct rdma_event_channel *channel);
struct ibv_qp_init_attr qp_attr(void);
void finish(struct rdma_cm_id *id);
struct rdma_cm_id *listening(struct rdma_event_channel *channel, const char *text);
/* Returns rdma_getaddrinfo's result for a node. */
struct rdma_addrinfo *info_for(const char *node, int flags);
/* Sends a connection request to a listener and returns the handle of the new id. */
uint32_t request_arrives(struct rdma_cm_id *listener);

#define CASES(X) \
	X(no_daemon) X(impossible_device) X(active) X(event_after_destroy_qp) X(passive) X(reject) X(rejected) \
	X(sync_active) X(sync_errors) X(endpoint) X(get_request_async) X(migrated_event) X(migrate) \
	X(migrate_pending) X(errno) X(nonblocking) X(unread_request) X(destroy_waits) X(cancel) \
	X(destroy_under_reader) X(destroy_before_reader) X(daemon_dies) X(threads) X(addresses) X(written_addresses) \
	X(getaddrinfo) \
	X(options) X(external_qp) X(private_room) X(private_padded) X(refusals) X(strings)

#define DECLARE(name) void test_##name(void);
CASES(DECLARE)

#endif
