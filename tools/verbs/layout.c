/*
 * Sizes, offsets and constants of infiniband/verbs.h that srdma-verbs uses, one a line:
 *
 *   STRUCTURE OCTETS
 *   STRUCTURE.FIELD OFFSET
 *   CONSTANT VALUE
 */
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>

#define S(type) printf(#type " %zu\n", sizeof(struct type))
#define F(type, field) printf(#type "." #field " %zu\n", offsetof(struct type, field))
#define C(name) printf(#name " %u\n", (unsigned int)name)

static void structures(void)
{
    F(ibv_context, ops.poll_cq);
    F(ibv_context, ops.req_notify_cq);
    F(ibv_context, ops.post_send);
    F(ibv_context, ops.post_recv);
    F(ibv_context, cmd_fd);
    F(ibv_context, async_fd);
    F(ibv_qp, context);
    F(ibv_qp, qp_num);
    F(ibv_cq, context);
    F(ibv_mr, lkey);
    F(ibv_mr, rkey);
    F(ibv_comp_channel, fd);
    S(ibv_gid_entry);
    F(ibv_gid_entry, gid);
    F(ibv_gid_entry, gid_index);
    F(ibv_gid_entry, port_num);
    F(ibv_gid_entry, gid_type);
    F(ibv_gid_entry, ndev_ifindex);
    S(ibv_device_attr);
    F(ibv_device_attr, max_mr_size);
    F(ibv_device_attr, max_qp_wr);
    F(ibv_device_attr, max_sge);
    F(ibv_device_attr, max_cqe);
    F(ibv_device_attr, phys_port_cnt);
    F(ibv_port_attr, state);
    F(ibv_port_attr, active_mtu);
    F(ibv_port_attr, gid_tbl_len);
    F(ibv_port_attr, max_msg_sz);
    F(ibv_port_attr, link_layer);
    S(ibv_sge);
    F(ibv_sge, addr);
    F(ibv_sge, length);
    F(ibv_sge, lkey);
    S(ibv_send_wr);
    F(ibv_send_wr, wr_id);
    F(ibv_send_wr, next);
    F(ibv_send_wr, sg_list);
    F(ibv_send_wr, num_sge);
    F(ibv_send_wr, opcode);
    F(ibv_send_wr, send_flags);
    F(ibv_send_wr, imm_data);
    F(ibv_send_wr, wr.rdma.remote_addr);
    F(ibv_send_wr, wr.rdma.rkey);
    S(ibv_recv_wr);
    F(ibv_recv_wr, wr_id);
    F(ibv_recv_wr, next);
    F(ibv_recv_wr, sg_list);
    F(ibv_recv_wr, num_sge);
    S(ibv_wc);
    F(ibv_wc, wr_id);
    F(ibv_wc, status);
    F(ibv_wc, opcode);
    F(ibv_wc, vendor_err);
    F(ibv_wc, byte_len);
    F(ibv_wc, imm_data);
    F(ibv_wc, qp_num);
    F(ibv_wc, wc_flags);
    S(ibv_async_event);
    F(ibv_async_event, element);
    F(ibv_async_event, event_type);
}

static void queue_pair(void)
{
    S(ibv_qp_cap);
    F(ibv_qp_cap, max_send_wr);
    F(ibv_qp_cap, max_recv_wr);
    F(ibv_qp_cap, max_send_sge);
    F(ibv_qp_cap, max_recv_sge);
    F(ibv_qp_cap, max_inline_data);
    S(ibv_qp_init_attr);
    F(ibv_qp_init_attr, send_cq);
    F(ibv_qp_init_attr, recv_cq);
    F(ibv_qp_init_attr, cap);
    F(ibv_qp_init_attr, qp_type);
    F(ibv_qp_init_attr, sq_sig_all);
    S(ibv_global_route);
    F(ibv_global_route, dgid);
    F(ibv_global_route, flow_label);
    F(ibv_global_route, sgid_index);
    F(ibv_global_route, hop_limit);
    F(ibv_global_route, traffic_class);
    S(ibv_ah_attr);
    F(ibv_ah_attr, grh);
    F(ibv_ah_attr, is_global);
    F(ibv_ah_attr, port_num);
    S(ibv_qp_attr);
    F(ibv_qp_attr, qp_state);
    F(ibv_qp_attr, path_mtu);
    F(ibv_qp_attr, rq_psn);
    F(ibv_qp_attr, sq_psn);
    F(ibv_qp_attr, dest_qp_num);
    F(ibv_qp_attr, qp_access_flags);
    F(ibv_qp_attr, cap);
    F(ibv_qp_attr, ah_attr);
    F(ibv_qp_attr, pkey_index);
    F(ibv_qp_attr, max_rd_atomic);
    F(ibv_qp_attr, max_dest_rd_atomic);
    F(ibv_qp_attr, min_rnr_timer);
    F(ibv_qp_attr, port_num);
    F(ibv_qp_attr, timeout);
    F(ibv_qp_attr, retry_cnt);
    F(ibv_qp_attr, rnr_retry);
}

static void constants(void)
{
    C(IBV_GID_TYPE_ROCE_V2);
    C(IBV_PORT_ACTIVE);
    C(IBV_LINK_LAYER_ETHERNET);
    C(IBV_MTU_256);
    C(IBV_MTU_4096);
    C(IBV_ACCESS_LOCAL_WRITE);
    C(IBV_ACCESS_REMOTE_WRITE);
    C(IBV_QPT_RC);
    C(IBV_QPS_RESET);
    C(IBV_QPS_INIT);
    C(IBV_QPS_RTR);
    C(IBV_QPS_RTS);
    C(IBV_QPS_ERR);
    C(IBV_QP_STATE);
    C(IBV_QP_ACCESS_FLAGS);
    C(IBV_QP_PKEY_INDEX);
    C(IBV_QP_PORT);
    C(IBV_QP_AV);
    C(IBV_QP_PATH_MTU);
    C(IBV_QP_TIMEOUT);
    C(IBV_QP_RETRY_CNT);
    C(IBV_QP_RNR_RETRY);
    C(IBV_QP_RQ_PSN);
    C(IBV_QP_MAX_QP_RD_ATOMIC);
    C(IBV_QP_MIN_RNR_TIMER);
    C(IBV_QP_SQ_PSN);
    C(IBV_QP_MAX_DEST_RD_ATOMIC);
    C(IBV_QP_DEST_QPN);
    C(IBV_WR_RDMA_WRITE);
    C(IBV_WR_RDMA_WRITE_WITH_IMM);
    C(IBV_WR_SEND);
    C(IBV_WR_SEND_WITH_IMM);
    C(IBV_SEND_SIGNALED);
    C(IBV_WC_SEND);
    C(IBV_WC_RDMA_WRITE);
    C(IBV_WC_RECV);
    C(IBV_WC_RECV_RDMA_WITH_IMM);
    C(IBV_WC_WITH_IMM);
    C(IBV_WC_SUCCESS);
    C(IBV_WC_LOC_LEN_ERR);
    C(IBV_WC_LOC_QP_OP_ERR);
    C(IBV_WC_LOC_PROT_ERR);
    C(IBV_WC_WR_FLUSH_ERR);
    C(IBV_WC_BAD_RESP_ERR);
    C(IBV_WC_LOC_ACCESS_ERR);
    C(IBV_WC_REM_INV_REQ_ERR);
    C(IBV_WC_REM_ACCESS_ERR);
    C(IBV_WC_REM_OP_ERR);
    C(IBV_WC_RETRY_EXC_ERR);
    C(IBV_WC_RNR_RETRY_EXC_ERR);
    C(IBV_WC_REM_ABORT_ERR);
    C(IBV_WC_FATAL_ERR);
    C(IBV_WC_RESP_TIMEOUT_ERR);
    C(IBV_WC_GENERAL_ERR);
    C(IBV_EVENT_CQ_ERR);
    C(IBV_EVENT_QP_FATAL);
    C(IBV_EVENT_QP_REQ_ERR);
    C(IBV_EVENT_QP_ACCESS_ERR);
    C(IBV_EVENT_COMM_EST);
    C(IBV_EVENT_SQ_DRAINED);
    C(IBV_EVENT_PATH_MIG);
    C(IBV_EVENT_PATH_MIG_ERR);
    C(IBV_EVENT_DEVICE_FATAL);
    C(IBV_EVENT_PORT_ACTIVE);
    C(IBV_EVENT_PORT_ERR);
    C(IBV_EVENT_LID_CHANGE);
    C(IBV_EVENT_PKEY_CHANGE);
    C(IBV_EVENT_SM_CHANGE);
    C(IBV_EVENT_QP_LAST_WQE_REACHED);
    C(IBV_EVENT_CLIENT_REREGISTER);
    C(IBV_EVENT_GID_CHANGE);
}

int main(void)
{
    structures();
    queue_pair();
    constants();
    return 0;
}
