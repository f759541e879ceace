package control

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// MR is a memory region.
type MR struct {
	object
	PD     *PD
	Region *mem.Region
	Why    string // why it takes the fallback path, as the library has reported
}

const knownAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic |
	abi.AccessZeroBased | abi.AccessMWBind

func (pd *PD) regMR(m *abi.RegMRRequest, r *Reply) (err error) {
	x := pd.x
	var old *MR
	if m.Replaces != 0 {
		if old, err = Find[*MR](x, m.Replaces); err != nil {
			return err
		}
	}
	if err := checkRegistration(m); err != nil {
		return err
	}
	bill := &account.Amounts{account.Regions: 1, account.RegisteredBytes: m.Length}
	if err := x.Take(bill); err != nil {
		return err
	}
	region, mapping, err := x.makeRegion(m, pd)
	if err != nil {
		x.Give(bill)
		return err
	}
	mr := &MR{PD: pd, Region: region}
	if m.Path == abi.PathFallback {
		mr.Why = TextIn(m.Why[:])
	}
	var resp abi.RegMRResponse
	x.Do(func() {
		if err = x.enter(mr.Region, old); err != nil {
			return
		}
		resp.Handle = x.add(mr, bill)
		if old != nil {
			old.remove()
		}
	})
	if err != nil {
		x.Give(bill)
		x.space.Unmap(mapping)
		return err
	}
	resp.LKey, resp.RKey = uint32(mr.Region.STag), uint32(mr.Region.STag)
	pd.users++
	if old != nil {
		old.left()
	}
	*r = Respond(&resp)
	return nil
}

// makeRegion makes the requested region, and the mapping of its memory.
func (x *Session) makeRegion(m *abi.RegMRRequest, pd *PD) (*mem.Region, mem.Mapping, error) {
	if m.Path == abi.PathNull {
		r, err := mem.NewNull(pd.Number)
		return r, mem.Mapping{}, err
	}
	mapping, err := x.reach(m)
	return mem.NewRegion(x.space, pd.Number, m.Access&knownAccess, m.IOVA, m.Length, m.Addr, mapping), mapping, err
}

// enter adds a region to the table, replacing old unless that is nil. It runs on the worker's
// thread.
func (x *Session) enter(r *mem.Region, old *MR) error {
	table := x.w.Engine.QPs.Regions
	r.Since = int64(x.w.Engine.Now())
	switch {
	case old != nil && old.Region.Windows() > 0:
		return fmt.Errorf("control: %d memory windows are bound to the region: %w", old.Region.Windows(), syscall.EBUSY)
	case old != nil:
		table.Replace(old.Region, r)
		return nil
	}
	x.s.making(x, r)
	if !table.Insert(r) {
		return fmt.Errorf("control: all STags are in use: %w", syscall.ENOMEM)
	}
	return nil
}

// left is called when a region has been removed from the table. Once it returns, the fallback
// path moves no more bytes of the region.
func (mr *MR) left() {
	mr.PD.users--
	if !mr.Region.Shared() {
		mr.x.space.Drain()
	}
}

func checkRegistration(m *abi.RegMRRequest) error {
	switch {
	case m.Addr+m.Length < m.Addr || m.IOVA+m.Length < m.IOVA:
		return fmt.Errorf("control: memory at %#x (for peers %#x) of %d bytes wraps past the end of addresses: %w", m.Addr,
			m.IOVA, m.Length, syscall.EINVAL)
	case m.Access&(abi.AccessRemoteWrite|abi.AccessRemoteAtomic) != 0 && m.Access&abi.AccessLocalWrite == 0:
		return fmt.Errorf("control: IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC want IBV_ACCESS_LOCAL_WRITE (ibv_reg_mr(3)): %w", syscall.EINVAL)
	}
	return nil
}

// reach maps shared pages, or makes sure that the fallback path works.
func (x *Session) reach(m *abi.RegMRRequest) (mem.Mapping, error) {
	switch {
	case m.Length == 0:
		return mem.Mapping{}, nil
	case m.Path == abi.PathFallback:
		return mem.Mapping{}, x.startFallback()
	case m.Path == abi.PathFile:
		return x.reachFile(m)
	case m.Path != abi.PathShared:
		return mem.Mapping{}, fmt.Errorf("control: memory by a way with the number %d: %w", m.Path, syscall.EINVAL)
	}
	return x.reached(x.space.Map(m.File, m.FileOffset, m.Length))
}

// reachFile maps a file that the program has mapped too.
func (x *Session) reachFile(m *abi.RegMRRequest) (mem.Mapping, error) {
	f := x.takeFile()
	if f == nil {
		return mem.Mapping{}, fmt.Errorf("%w: %w", errNoDescriptor, syscall.EBADF)
	}
	defer x.Closer().Close(f)
	if err := mem.CheckShmem(f); err != nil {
		return mem.Mapping{}, fmt.Errorf("%w: %w", err, syscall.EOPNOTSUPP)
	}
	return x.reached(x.space.MapFile(f, mem.FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}, m.FileOffset,
		m.Length))
}

func (x *Session) reached(mapping mem.Mapping, err error) (mem.Mapping, error) {
	switch {
	case err == nil:
		x.space.Populate(mapping)
		return mapping, nil
	case errors.Is(err, syscall.ENOMEM):
		return mem.Mapping{}, err
	}
	return mem.Mapping{}, fmt.Errorf("%w: %w", err, syscall.EINVAL)
}

func (mr *MR) deregMR(*abi.HandleMessage, *Reply) error {
	busy := false
	mr.x.Do(func() {
		if busy = mr.Region.Windows() > 0; !busy {
			mr.x.w.Engine.QPs.Regions.Remove(mr.Region)
			mr.x.s.gone(mr.x, mr.Region)
			mr.remove()
		}
	})
	if busy {
		return fmt.Errorf("control: memory windows are bound to the region: %w", syscall.EBUSY)
	}
	mr.left()
	return nil
}
