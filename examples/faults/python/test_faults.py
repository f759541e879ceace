"""Tests of error handling with pytest: pytest -q test_faults.py"""
import ctypes
import errno

import pytest
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_QPT_RC, IBV_SEND_SIGNALED, \
    IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WR_RDMA_WRITE
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

SIZE = 1 << 20


@pytest.fixture
def inject():
    """urdma inject for the objects of this process; what a test has injected ends with it."""
    try:
        call = ctypes.CDLL(None).urdma_inject
    except AttributeError:
        pytest.skip("this needs urdma")
    call.argtypes, call.restype = [ctypes.c_char_p], ctypes.c_int64

    def statements(text):
        answer = call(text.encode())
        if answer < 0:
            raise OSError(-answer, errno.errorcode[-answer], text)
        return answer

    yield statements
    call(b"clear")


class Loopback:
    """A queue pair connected with itself."""

    def __init__(self):
        self.context = Context(name=get_device_list()[0].name.decode())
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 16)
        self.mr = MR(self.pd, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=8, max_recv_wr=8))
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE
        self.qp = QP(self.pd, init, attr)
        port = self.context.query_port(1)
        route = GlobalRoute(dgid=self.context.query_gid(1, 0))
        attr.dest_qp_num, attr.path_mtu = self.qp.qp_num, port.active_mtu
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.ah_attr = AHAttr(dlid=port.lid, port_num=1, is_global=1, gr=route)
        self.qp.to_rts(attr)

    def write(self, length):
        """Returns the status of the completion."""
        wr = SendWR(opcode=IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)],
                    send_flags=IBV_SEND_SIGNALED)
        wr.set_wr_rdma(self.mr.rkey, self.mr.buf + SIZE)
        self.qp.post_send(wr)
        while True:
            n, completions = self.cq.poll(1)
            if n:
                return completions[0].status


def test_third_write_fails(inject):
    ends = Loopback()
    rule = inject(f"send status=RETRY_EXC_ERR nth=3 qp={ends.qp.qp_num:x}")
    assert [ends.write(64) for _ in range(4)] == [IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR,
                                                  IBV_WC_WR_FLUSH_ERR]
    assert inject(f"hits {rule}") == 1


def test_cut_after_1_mib(inject):
    ends = Loopback()
    inject(f"send status=RETRY_EXC_ERR bytes=1MiB qp={ends.qp.qp_num:x}")
    assert ends.write(SIZE) == IBV_WC_SUCCESS
    assert ends.write(1) == IBV_WC_RETRY_EXC_ERR


def test_registration_fails(inject):
    inject("call ibv_reg_mr errno=ENOMEM")
    with pytest.raises(PyverbsRDMAError, match="Cannot allocate memory"):
        Loopback()
