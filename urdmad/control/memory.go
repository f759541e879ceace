package control

import (
	"fmt"
	"syscall"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// mrObject is a memory region.
type mrObject struct {
	created
	pd     *pdObject
	region *mem.Region
}

const knownAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic |
	abi.AccessZeroBased

func (x *Session) regMR(m *abi.RegMRRequest, r *reply) error {
	pd, err := object[*pdObject](x, m.PD)
	if err != nil {
		return err
	}
	if err := x.checkRegistration(m); err != nil {
		return err
	}
	mapping, err := x.reach(m)
	if err != nil {
		return err
	}
	mr := &mrObject{pd: pd, region: mem.NewRegion(x.space, pd.number, m.Access&knownAccess, m.IOVA, m.Length, m.Addr, mapping)}
	var resp abi.RegMRResponse
	inserted := false
	x.do(func() {
		if inserted = x.s.Engine.Memory().Insert(mr.region); !inserted {
			return
		}
		resp.Handle = x.add(mr)
	})
	if !inserted {
		x.space.Unmap(mapping)
		return fmt.Errorf("control: all STags are in use: %w", syscall.ENOMEM)
	}
	resp.LKey, resp.RKey = uint32(mr.region.STag), uint32(mr.region.STag)
	pd.users++
	x.used.mrs++
	x.used.bytes += m.Length
	*r = respond(&resp)
	return nil
}

func (x *Session) checkRegistration(m *abi.RegMRRequest) error {
	l := x.s.limits()
	switch {
	case m.Addr+m.Length < m.Addr || m.IOVA+m.Length < m.IOVA:
		return syscall.EINVAL
	case m.Access&(abi.AccessRemoteWrite|abi.AccessRemoteAtomic) != 0 && m.Access&abi.AccessLocalWrite == 0:
		return syscall.EINVAL // ibv_reg_mr(3)
	case l.MemoryRegions > 0 && x.used.mrs >= l.MemoryRegions:
		return overLimit("memory_regions", uint64(l.MemoryRegions))
	case l.RegisteredBytes > 0 && (m.Length > l.RegisteredBytes || x.used.bytes > l.RegisteredBytes-m.Length):
		return overLimit("registered_bytes", l.RegisteredBytes)
	}
	return nil
}

// reach maps shared pages, or makes sure that the fallback path works.
func (x *Session) reach(m *abi.RegMRRequest) (mem.Mapping, error) {
	switch {
	case m.Length == 0:
		return mem.Mapping{}, nil
	case m.Path == abi.PathFallback:
		if err := x.space.Fallback(); err != nil {
			return mem.Mapping{}, fmt.Errorf("%w: %w", err, syscall.EOPNOTSUPP)
		}
		return mem.Mapping{}, nil
	case m.Path != abi.PathShared:
		return mem.Mapping{}, syscall.EINVAL
	}
	mapping, err := x.space.Map(m.File, m.FileOffset, m.Length)
	if err != nil {
		return mem.Mapping{}, fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	return mapping, nil
}

func (x *Session) deregMR(m *abi.HandleMessage, _ *reply) error {
	mr, err := object[*mrObject](x, m.Handle)
	if err != nil {
		return err
	}
	x.used.mrs--
	x.used.bytes -= mr.region.Length()
	mr.pd.users--
	x.do(func() {
		x.s.Engine.Memory().Remove(mr.region)
		delete(x.objects, m.Handle)
	})
	if !mr.region.Shared() {
		x.space.Drain()
	}
	return nil
}
