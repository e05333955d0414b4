//! Structures and constants of `infiniband/verbs.h`, the same in rdma-core 44 and 65 on machines with 64-bit pointers.
//!
//! Of structures that libibverbs allocates, only the beginning is here: as far as this crate reads it.

#![allow(missing_docs, reason = "the names are those of infiniband/verbs.h")]
#![allow(non_camel_case_types, reason = "the names are those of infiniband/verbs.h")]

use std::ffi::{c_int, c_uint, c_void};

/// Opaque: `struct ibv_device` and others of which nothing is read.
pub(crate) enum ibv_device {}
pub(crate) enum ibv_pd {}

type Unused = *const c_void;
pub(crate) type PollCq = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;
pub(crate) type ReqNotifyCq = unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int;
pub(crate) type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;
pub(crate) type PostRecv = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;

/// Operations of the provider that inline functions of the header call.
#[repr(C)]
pub(crate) struct ibv_context_ops {
    _before_poll_cq: [Unused; 11],
    pub(crate) poll_cq: PollCq,
    pub(crate) req_notify_cq: ReqNotifyCq,
    _before_post_send: [Unused; 12],
    pub(crate) post_send: PostSend,
    pub(crate) post_recv: PostRecv,
    _after_post_recv: [Unused; 5],
}

#[repr(C)]
pub(crate) struct ibv_context {
    _device: *mut ibv_device,
    pub(crate) ops: ibv_context_ops,
    pub(crate) cmd_fd: c_int,
    pub(crate) async_fd: c_int,
}

#[repr(C)]
pub(crate) struct ibv_qp {
    pub(crate) context: *mut ibv_context,
    _pointers: [Unused; 5],
    _handle: u32,
    pub(crate) qp_num: u32,
}

#[repr(C)]
pub(crate) struct ibv_cq {
    pub(crate) context: *mut ibv_context,
}

#[repr(C)]
pub(crate) struct ibv_mr {
    _pointers: [Unused; 3],
    _length: usize,
    _handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

#[repr(C)]
pub(crate) struct ibv_comp_channel {
    _context: *mut ibv_context,
    pub(crate) fd: c_int,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_gid {
    pub(crate) raw: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_gid_entry {
    pub(crate) gid: ibv_gid,
    pub(crate) gid_index: u32,
    pub(crate) port_num: u32,
    pub(crate) gid_type: u32,
    pub(crate) ndev_ifindex: u32,
}

#[repr(C, align(8))]
pub(crate) struct ibv_device_attr {
    _to_max_mr_size: [u8; 80],
    pub(crate) max_mr_size: u64,
    _to_max_qp_wr: [u8; 24],
    pub(crate) max_qp_wr: c_int,
    _device_cap_flags: c_uint,
    pub(crate) max_sge: c_int,
    _to_max_cqe: [u8; 8],
    pub(crate) max_cqe: c_int,
    _to_phys_port_cnt: [u8; 91],
    pub(crate) phys_port_cnt: u8,
}

/// 52 octets in rdma-core 44, 56 in 64: libraries may write more than is named here, up to the length of this.
#[repr(C)]
pub(crate) struct ibv_port_attr {
    pub(crate) state: c_uint,
    _max_mtu: c_uint,
    pub(crate) active_mtu: c_uint,
    pub(crate) gid_tbl_len: c_int,
    _port_cap_flags: u32,
    pub(crate) max_msg_sz: u32,
    _to_link_layer: [u8; 22],
    pub(crate) link_layer: u8,
    _room: [u8; 81],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ibv_sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

#[repr(C)]
pub(crate) struct ibv_send_wr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut ibv_send_wr,
    pub(crate) sg_list: *mut ibv_sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: c_uint,
    pub(crate) send_flags: c_uint,
    /// In network byte order.
    pub(crate) imm_data: u32,
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
    /// Atomic operations, datagrams, XRC, memory windows, segmentation.
    pub(crate) others: [u64; 9],
}

#[repr(C)]
pub(crate) struct ibv_recv_wr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut ibv_recv_wr,
    pub(crate) sg_list: *mut ibv_sge,
    pub(crate) num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_wc {
    pub(crate) wr_id: u64,
    pub(crate) status: c_uint,
    pub(crate) opcode: c_uint,
    pub(crate) vendor_err: u32,
    pub(crate) byte_len: u32,
    /// In network byte order.
    pub(crate) imm_data: u32,
    pub(crate) qp_num: u32,
    pub(crate) src_qp: u32,
    pub(crate) wc_flags: c_uint,
    pub(crate) pkey_index: u16,
    pub(crate) slid: u16,
    pub(crate) sl: u8,
    pub(crate) dlid_path_bits: u8,
}

/// `element` is a pointer or a port number, depending on the type.
#[repr(C)]
pub(crate) struct ibv_async_event {
    pub(crate) element: u64,
    pub(crate) event_type: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_qp_cap {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
}

#[repr(C)]
pub(crate) struct ibv_qp_init_attr {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut c_void,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) qp_type: c_uint,
    pub(crate) sq_sig_all: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_global_route {
    pub(crate) dgid: ibv_gid,
    pub(crate) flow_label: u32,
    pub(crate) sgid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_ah_attr {
    pub(crate) grh: ibv_global_route,
    pub(crate) dlid: u16,
    pub(crate) sl: u8,
    pub(crate) src_path_bits: u8,
    pub(crate) static_rate: u8,
    pub(crate) is_global: u8,
    pub(crate) port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ibv_qp_attr {
    pub(crate) qp_state: c_uint,
    pub(crate) cur_qp_state: c_uint,
    pub(crate) path_mtu: c_uint,
    pub(crate) path_mig_state: c_uint,
    pub(crate) qkey: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) dest_qp_num: u32,
    pub(crate) qp_access_flags: c_uint,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) ah_attr: ibv_ah_attr,
    pub(crate) alt_ah_attr: ibv_ah_attr,
    pub(crate) pkey_index: u16,
    pub(crate) alt_pkey_index: u16,
    pub(crate) en_sqd_async_notify: u8,
    pub(crate) sq_draining: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) port_num: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) alt_port_num: u8,
    pub(crate) alt_timeout: u8,
    pub(crate) rate_limit: u32,
}

const _: () = {
    assert!(size_of::<usize>() == 8);
    assert!(size_of::<ibv_sge>() == 16);
    assert!(size_of::<ibv_send_wr>() == 128);
    assert!(size_of::<ibv_recv_wr>() == 32);
    assert!(size_of::<ibv_wc>() == 48);
    assert!(size_of::<ibv_async_event>() == 16);
    assert!(size_of::<ibv_qp_init_attr>() == 64);
    assert!(size_of::<ibv_qp_attr>() == 144);
    assert!(size_of::<ibv_ah_attr>() == 32);
    assert!(size_of::<ibv_global_route>() == 24);
    assert!(size_of::<ibv_gid_entry>() == 32);
    assert!(size_of::<ibv_device_attr>() == 232);
    assert!(size_of::<ibv_port_attr>() == 128);
};

macro_rules! constants {
    ($($name:ident = $value:expr),* $(,)?) => {
        $(pub(crate) const $name: u32 = $value;)*

        /// All of them by their names.
        #[cfg(test)]
        const CONSTANTS: &[(&str, u32)] = &[$((stringify!($name), $name)),*];
    };
}

constants! {
    IBV_GID_TYPE_ROCE_V2 = 2,
    IBV_PORT_ACTIVE = 4,
    IBV_LINK_LAYER_ETHERNET = 2,
    IBV_MTU_256 = 1,
    IBV_MTU_4096 = 5,
    IBV_ACCESS_LOCAL_WRITE = 1,
    IBV_ACCESS_REMOTE_WRITE = 2,
    IBV_QPT_RC = 2,
    IBV_QPS_RESET = 0,
    IBV_QPS_INIT = 1,
    IBV_QPS_RTR = 2,
    IBV_QPS_RTS = 3,
    IBV_QPS_ERR = 6,
    IBV_QP_STATE = 1,
    IBV_QP_ACCESS_FLAGS = 8,
    IBV_QP_PKEY_INDEX = 0x10,
    IBV_QP_PORT = 0x20,
    IBV_QP_AV = 0x80,
    IBV_QP_PATH_MTU = 0x100,
    IBV_QP_TIMEOUT = 0x200,
    IBV_QP_RETRY_CNT = 0x400,
    IBV_QP_RNR_RETRY = 0x800,
    IBV_QP_RQ_PSN = 0x1000,
    IBV_QP_MAX_QP_RD_ATOMIC = 0x2000,
    IBV_QP_MIN_RNR_TIMER = 0x8000,
    IBV_QP_SQ_PSN = 0x1_0000,
    IBV_QP_MAX_DEST_RD_ATOMIC = 0x2_0000,
    IBV_QP_DEST_QPN = 0x10_0000,
    IBV_WR_RDMA_WRITE = 0,
    IBV_WR_RDMA_WRITE_WITH_IMM = 1,
    IBV_WR_SEND = 2,
    IBV_WR_SEND_WITH_IMM = 3,
    IBV_SEND_SIGNALED = 2,
    IBV_WC_SEND = 0,
    IBV_WC_RDMA_WRITE = 1,
    IBV_WC_RECV = 128,
    IBV_WC_RECV_RDMA_WITH_IMM = 129,
    IBV_WC_WITH_IMM = 2,
    IBV_WC_SUCCESS = 0,
    IBV_WC_LOC_LEN_ERR = 1,
    IBV_WC_LOC_QP_OP_ERR = 2,
    IBV_WC_LOC_PROT_ERR = 4,
    IBV_WC_WR_FLUSH_ERR = 5,
    IBV_WC_BAD_RESP_ERR = 7,
    IBV_WC_LOC_ACCESS_ERR = 8,
    IBV_WC_REM_INV_REQ_ERR = 9,
    IBV_WC_REM_ACCESS_ERR = 10,
    IBV_WC_REM_OP_ERR = 11,
    IBV_WC_RETRY_EXC_ERR = 12,
    IBV_WC_RNR_RETRY_EXC_ERR = 13,
    IBV_WC_REM_ABORT_ERR = 16,
    IBV_WC_FATAL_ERR = 19,
    IBV_WC_RESP_TIMEOUT_ERR = 20,
    IBV_WC_GENERAL_ERR = 21,
    IBV_EVENT_CQ_ERR = 0,
    IBV_EVENT_QP_FATAL = 1,
    IBV_EVENT_QP_REQ_ERR = 2,
    IBV_EVENT_QP_ACCESS_ERR = 3,
    IBV_EVENT_COMM_EST = 4,
    IBV_EVENT_SQ_DRAINED = 5,
    IBV_EVENT_PATH_MIG = 6,
    IBV_EVENT_PATH_MIG_ERR = 7,
    IBV_EVENT_DEVICE_FATAL = 8,
    IBV_EVENT_PORT_ACTIVE = 9,
    IBV_EVENT_PORT_ERR = 10,
    IBV_EVENT_LID_CHANGE = 11,
    IBV_EVENT_PKEY_CHANGE = 12,
    IBV_EVENT_SM_CHANGE = 13,
    IBV_EVENT_QP_LAST_WQE_REACHED = 16,
    IBV_EVENT_CLIENT_REREGISTER = 17,
    IBV_EVENT_GID_CHANGE = 18,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::mem::offset_of;

    /// The length of what libraries write is not ours, or not that of the whole structure.
    macro_rules! offsets {
        ($map:ident, $type:ident: $($field:ident).+ as $name:literal) => {
            $map.insert(concat!(stringify!($type), ".", $name).to_owned(), offset_of!($type, $($field).+) as u64);
        };
        ($map:ident, $type:ident: $($field:ident),+) => {
            $($map.insert(concat!(stringify!($type), ".", stringify!($field)).to_owned(),
                          offset_of!($type, $field) as u64);)+
        };
    }

    macro_rules! structure {
        ($map:ident, $type:ident: $($field:ident),+) => {
            $map.insert(stringify!($type).to_owned(), size_of::<$type>() as u64);
            offsets!($map, $type: $($field),+);
        };
    }

    /// What this file has, by the names that tools/verbs/layout.c prints.
    fn ours() -> BTreeMap<String, u64> {
        let mut map = BTreeMap::new();
        offsets!(map, ibv_context: ops.poll_cq as "ops.poll_cq");
        offsets!(map, ibv_context: ops.req_notify_cq as "ops.req_notify_cq");
        offsets!(map, ibv_context: ops.post_send as "ops.post_send");
        offsets!(map, ibv_context: ops.post_recv as "ops.post_recv");
        offsets!(map, ibv_context: cmd_fd, async_fd);
        offsets!(map, ibv_qp: context, qp_num);
        offsets!(map, ibv_cq: context);
        offsets!(map, ibv_mr: lkey, rkey);
        offsets!(map, ibv_comp_channel: fd);
        structure!(map, ibv_gid_entry: gid, gid_index, port_num, gid_type, ndev_ifindex);
        structure!(map, ibv_device_attr: max_mr_size, max_qp_wr, max_sge, max_cqe, phys_port_cnt);
        offsets!(map, ibv_port_attr: state, active_mtu, gid_tbl_len, max_msg_sz, link_layer);
        structure!(map, ibv_sge: addr, length, lkey);
        structure!(map, ibv_send_wr: wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data);
        offsets!(map, ibv_send_wr: remote_addr as "wr.rdma.remote_addr");
        offsets!(map, ibv_send_wr: rkey as "wr.rdma.rkey");
        structure!(map, ibv_recv_wr: wr_id, next, sg_list, num_sge);
        structure!(map, ibv_wc: wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, wc_flags);
        structure!(map, ibv_async_event: element, event_type);
        structure!(map, ibv_qp_cap: max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data);
        structure!(map, ibv_qp_init_attr: send_cq, recv_cq, cap, qp_type, sq_sig_all);
        structure!(map, ibv_global_route: dgid, flow_label, sgid_index, hop_limit, traffic_class);
        structure!(map, ibv_ah_attr: grh, is_global, port_num);
        structure!(map, ibv_qp_attr: qp_state, path_mtu, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr);
        offsets!(map, ibv_qp_attr: pkey_index, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num);
        offsets!(map, ibv_qp_attr: timeout, retry_cnt, rnr_retry);
        map.extend(CONSTANTS.iter().map(|(name, value)| ((*name).to_owned(), u64::from(*value))));
        map
    }

    fn parsed(text: &str) -> BTreeMap<String, u64> {
        let line = |line: &str| {
            let (name, value) = line.split_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn structures_are_those_of_the_header() {
        let ours = ours();
        let headers = [
            ("44", include_str!("../../../../testdata/verbs/layout-44.txt")),
            ("65", include_str!("../../../../testdata/verbs/layout-65.txt")),
        ];
        for (version, text) in headers {
            let header = parsed(text);
            assert_eq!(header.len(), 170, "rdma-core {version}");
            assert_eq!(ours, header, "rdma-core {version}");
        }
    }
}
