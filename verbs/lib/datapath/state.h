/* state.h - the state of a queue pair, as this process knows it. */
#ifndef URDMA_STATE_H
#define URDMA_STATE_H

#include <infiniband/verbs.h>

/*
 * Records a state to which urdmad has already moved the queue pair; sends no request. rdma_cm calls it
 * with INIT when rdma_create_qp returns, RTS when accept was sent or ESTABLISHED arrived, ERR on
 * disconnect. It saves a request: before a post to a queue pair that looks unconnected fails, urdmad is
 * asked.
 */
void urdma_qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state);

#endif /* URDMA_STATE_H */
