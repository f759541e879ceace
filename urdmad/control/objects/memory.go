package objects

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/control/process"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// MR is a memory region.
type MR struct {
	control.Base
	PD     *PD
	Region *mem.Region
	Why    string // why it takes the fallback path, as the library has reported
}

const knownAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic |
	abi.AccessZeroBased | abi.AccessMWBind | abi.AccessOnDemand

func (pd *PD) regMR(m *abi.RegMRRequest, r *control.Reply) (err error) {
	x := pd.Session
	var old *MR
	if m.Replaces != 0 {
		if old, err = control.Find[*MR](x, m.Replaces); err != nil {
			return err
		}
	}
	if err := checkRegistration(m); err != nil {
		return err
	}
	bill := &account.Amounts{account.Regions: 1}
	if m.Path != abi.PathOnDemand { // which holds no memory
		bill[account.RegisteredBytes] = m.Length
	}
	if err := x.Take(bill); err != nil {
		return err
	}
	region, mapping, err := makeRegion(x, m, pd)
	if err != nil {
		x.Give(bill)
		return err
	}
	mr := &MR{PD: pd, Region: region}
	switch m.Path {
	case abi.PathOnDemand:
		mr.Why = "IBV_ACCESS_ON_DEMAND"
	case abi.PathFallback:
		mr.Why = process.CString(m.Why[:])
	}
	var resp abi.RegMRResponse
	x.Do(func() {
		if err = enter(x, mr.Region, old); err != nil {
			return
		}
		resp.Handle = x.Add(mr, bill)
		if old != nil {
			old.Remove()
		}
	})
	if err != nil {
		x.Give(bill)
		x.Client().Space.Unmap(mapping)
		return err
	}
	resp.LKey, resp.RKey = uint32(mr.Region.STag), uint32(mr.Region.STag)
	pd.users++
	if old != nil {
		old.left()
	}
	*r = control.Respond(&resp)
	return nil
}

// makeRegion makes the requested region, and the mapping of its memory.
func makeRegion(x *control.Session, m *abi.RegMRRequest, pd *PD) (*mem.Region, mem.Mapping, error) {
	if m.Path == abi.PathNull {
		r, err := mem.NewNull(pd.Number)
		return r, mem.Mapping{}, err
	}
	mapping, err := reach(x, m)
	r := mem.NewRegion(x.Client().Space, pd.Number, m.Access&knownAccess, m.IOVA, m.Length, m.Addr, mapping)
	if err == nil && m.Path == abi.PathOnDemand {
		r.Check = x.Mappings().Allows
		r.Access &^= abi.AccessRemoteAtomic
	}
	return r, mapping, err
}

// enter adds a region to the table, replacing old unless that is nil. It runs on the worker's
// thread.
func enter(x *control.Session, r *mem.Region, old *MR) error {
	table := x.Worker().Engine.QPs.Regions
	r.Since = int64(x.Worker().Engine.Now())
	switch {
	case old != nil && old.Region.Windows() > 0:
		return fmt.Errorf("control: %d memory windows are bound to the region: %w", old.Region.Windows(), syscall.EBUSY)
	case old != nil:
		table.Replace(old.Region, r)
		return nil
	}
	x.Server().Making(x, r)
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
		mr.Session.Client().Space.Drain()
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
func reach(x *control.Session, m *abi.RegMRRequest) (mem.Mapping, error) {
	switch {
	case m.Path == abi.PathOnDemand:
		return mem.Mapping{}, x.StartOnDemand()
	case m.Length == 0:
		return mem.Mapping{}, nil
	case m.Path == abi.PathFallback:
		return mem.Mapping{}, x.StartFallback()
	case m.Path == abi.PathFile:
		return reachFile(x, m)
	case m.Path != abi.PathShared:
		return mem.Mapping{}, fmt.Errorf("control: memory by a way with the number %d: %w", m.Path, syscall.EINVAL)
	}
	mapping, err := x.Client().Space.Map(m.File, m.FileOffset, m.Length)
	return reached(x, mapping, err)
}

// reachFile maps a file that the program has mapped too.
func reachFile(x *control.Session, m *abi.RegMRRequest) (mem.Mapping, error) {
	f := x.TakeFile()
	if f == nil {
		return mem.Mapping{}, fmt.Errorf("%w: %w", errNoDescriptor, syscall.EBADF)
	}
	if err := mem.CheckShmem(f); err != nil {
		x.Closer().Close(f)
		return mem.Mapping{}, fmt.Errorf("%w: %w", err, syscall.EOPNOTSUPP)
	}
	file := f.OS("memory of a client")
	defer x.Closer().Close(file)
	id := mem.FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}
	mapping, err := x.Client().Space.MapFile(file, id, m.FileOffset, m.Length)
	return reached(x, mapping, err)
}

func reached(x *control.Session, mapping mem.Mapping, err error) (mem.Mapping, error) {
	switch {
	case err == nil:
		x.Client().Space.Populate(mapping)
		return mapping, nil
	case errors.Is(err, syscall.ENOMEM):
		return mem.Mapping{}, err
	}
	return mem.Mapping{}, fmt.Errorf("%w: %w", err, syscall.EINVAL)
}

func (mr *MR) deregMR(*abi.HandleMessage, *control.Reply) error {
	busy := false
	mr.Session.Do(func() {
		if busy = mr.Region.Windows() > 0; !busy {
			mr.Session.Worker().Engine.QPs.Regions.Remove(mr.Region)
			mr.Session.Server().Gone(mr.Session, mr.Region)
			mr.Remove()
		}
	})
	if busy {
		return fmt.Errorf("control: memory windows are bound to the region: %w", syscall.EBUSY)
	}
	mr.left()
	return nil
}

// End implements control.Object.
func (mr *MR) End() *memfd.Shared {
	t := mr.Session.Worker().Engine.QPs
	t.Spend(mr.Region.RemovalCost())
	t.Regions.Remove(mr.Region)
	return nil
}

// MW is a memory window. It counts against the limit of memory regions, because it takes an STag.
type MW struct {
	control.Base
	PD     *PD
	Window *mem.Window
}

func (pd *PD) allocMW(m *abi.AllocMWRequest, r *control.Reply) error {
	x := pd.Session
	if m.Type != abi.MWType1 && m.Type != abi.MWType2 {
		return fmt.Errorf("control: a memory window of type %d, there are %d and %d: %w", m.Type, abi.MWType1, abi.MWType2,
			syscall.EINVAL)
	}
	bill := &account.Amounts{account.Regions: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	o := &MW{PD: pd, Window: &mem.Window{PD: pd.Number, Type2: m.Type == abi.MWType2}}
	var resp abi.AllocMWResponse
	inserted := false
	x.Do(func() {
		if inserted = x.Worker().Engine.QPs.Regions.InsertWindow(o.Window); inserted {
			resp.Handle, resp.RKey = x.Add(o, bill), uint32(o.Window.STag())
		}
	})
	if !inserted {
		x.Give(bill)
		return fmt.Errorf("control: all STags are in use: %w", syscall.ENOMEM)
	}
	pd.users++
	*r = control.Respond(&resp)
	return nil
}

// deallocMW also unbinds the window.
func (o *MW) deallocMW(*abi.HandleMessage, *control.Reply) error {
	shared := true
	o.Session.Do(func() {
		if b := o.Window.Bound(); b != nil {
			shared = b.Shared()
		}
		o.Session.Worker().Engine.QPs.Regions.RemoveWindow(o.Window)
		o.Remove()
	})
	o.PD.users--
	if !shared {
		o.Session.Client().Space.Drain()
	}
	return nil
}

// End implements control.Object.
func (o *MW) End() *memfd.Shared {
	o.Session.Worker().Engine.QPs.Regions.RemoveWindow(o.Window)
	return nil
}
