/* state.h - the state of a queue pair, as this process knows it. */
#ifndef URDMA_STATE_H
#define URDMA_STATE_H

#include <infiniband/verbs.h>

/*
 * Records a state that urdmad already moved the queue pair to (no request is
 * sent). rdma_cm: INIT when rdma_create_qp returns, RTS when accept was sent
 * or ESTABLISHED arrived, ERR on disconnect. Without it nothing breaks: a post
 * to a queue pair that looks unconnected asks urdmad first.
 */
void urdma_qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state);

#endif /* URDMA_STATE_H */
