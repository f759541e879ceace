package verbs_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"urdma/verbs"
)

// limitsTest is a client that creates as many of everything as its device allows.
type limitsTest struct {
	t  *testing.T
	d  *verbs.Device
	x  *verbs.Context
	pd *verbs.PD
	cq *verbs.CQ
}

// reach creates most objects, and closes them.
func reach[T io.Closer](l *limitsTest, most int, create func() (T, error)) {
	l.t.Helper()
	made := make([]T, 0, most)
	for range most {
		o, err := create()
		if err != nil {
			l.t.Fatalf("%d, and after %d: %v", most, len(made), err)
		}
		made = append(made, o)
	}
	if most == 0 {
		l.t.Fatal("none")
	}
	for _, o := range made {
		ok(l.t, o.Close())
	}
}

func (l *limitsTest) pair(o verbs.QPOptions) {
	reach(l, 1, func() (*verbs.QP, error) { return l.pd.CreateQP(l.cq, l.cq, o) })
}

// limits has an entry for each field Max… of verbs.Device.
var limits = map[string]func(l *limitsTest){
	"MaxQP": func(l *limitsTest) {
		reach(l, l.d.MaxQP, func() (*verbs.QP,
			error) {
			return l.pd.CreateQP(l.cq, l.cq, verbs.QPOptions{SendWR: 1, RecvWR: 1})
		})
	},
	"MaxQPWR":   func(l *limitsTest) { l.pair(verbs.QPOptions{SendWR: l.d.MaxQPWR, RecvWR: l.d.MaxQPWR}) },
	"MaxSGE":    func(l *limitsTest) { l.pair(verbs.QPOptions{SendSGE: l.d.MaxSGE, RecvSGE: l.d.MaxSGE}) },
	"MaxInline": func(l *limitsTest) { l.pair(verbs.QPOptions{Inline: l.d.MaxInline}) },
	"MaxCQ": func(l *limitsTest) {
		ok(l.t, l.cq.Close())
		reach(l, l.d.MaxCQ, func() (*verbs.CQ, error) { return l.x.CreateCQ(1, nil) })
	},
	"MaxCQE": func(l *limitsTest) {
		reach(l, 1, func() (*verbs.CQ, error) { return l.x.CreateCQ(l.d.MaxCQE, nil) })
	},
	"MaxMR": func(l *limitsTest) {
		b := make([]byte, 4096)
		reach(l, l.d.MaxMR, func() (*verbs.MR, error) { return l.pd.RegisterMemory(b, verbs.LocalWrite) })
	},
	"MaxMW": func(l *limitsTest) {
		reach(l, l.d.MaxMW, func() (*verbs.Window, error) { return l.pd.AllocWindow(verbs.Window2) })
	},
	"MaxSRQ": func(l *limitsTest) {
		reach(l, l.d.MaxSRQ, func() (*verbs.SRQ, error) { return l.pd.CreateSRQ(verbs.SRQOptions{RecvWR: 1}) })
	},
	"MaxSRQWR": func(l *limitsTest) {
		reach(l, 1, func() (*verbs.SRQ, error) { return l.pd.CreateSRQ(verbs.SRQOptions{RecvWR: l.d.MaxSRQWR}) })
	},
	"MaxSRQSGE": func(l *limitsTest) {
		reach(l, 1, func() (*verbs.SRQ, error) { return l.pd.CreateSRQ(verbs.SRQOptions{RecvSGE: l.d.MaxSRQSGE}) })
	},
	"MaxPD": func(l *limitsTest) {
		ok(l.t, l.pd.Close())
		reach(l, l.d.MaxPD, l.x.AllocPD)
	},
	"MaxMRSize": func(l *limitsTest) {
		reach(l, 1, func() (*verbs.MR, error) { return l.pd.AllocMemory(int(l.d.MaxMRSize), verbs.LocalWrite) })
	},
	// Limits of connections and messages are tested elsewhere.
	"MaxReads": nil, "MaxMessage": nil, "MaxDatagram": nil,
}

// TestLimits: one client can have as many of everything as its device states.
func TestLimits(t *testing.T) {
	config := filepath.Join(t.TempDir(), "urdma.json")
	text := `{"ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24"}], ` +
		`"limits": {"registered_bytes": 1073741824}}`
	ok(t, os.WriteFile(config, []byte(text), 0o600))
	daemon := startDaemon(t, "--config", config)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[verbs.Device]()) {
		reached, known := limits[f.Name]
		if !strings.HasPrefix(f.Name, "Max") || known && reached == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			if !known {
				t.Fatal("nothing here reaches it")
			}
			l := &limitsTest{t: t, d: daemon.open().Devices()[0]}
			l.x = must(l.d.Open())(t)
			l.pd = must(l.x.AllocPD())(t)
			l.cq = must(l.x.CreateCQ(1, nil))(t)
			reached(l)
		})
	}
}

// TestStrictLimits: with URDMA_STRICT a device states smaller limits, and refuses more.
func TestStrictLimits(t *testing.T) {
	t.Setenv("URDMA_STRICT", "max_sge:3,max_qp_wr:5,max_inline_data:32,max_cqe:7,"+
		"max_qp_rd_atom:2,max_srq_wr:6,max_srq_sge:4")
	l := &limitsTest{t: t, d: startDaemon(t).open().Devices()[0]}
	l.x = must(l.d.Open())(t)
	l.pd = must(l.x.AllocPD())(t)
	l.cq = must(l.x.CreateCQ(1, nil))(t)
	if l.d.MaxReads != 2 {
		t.Errorf("MaxReads is %d, expected 2", l.d.MaxReads)
	}
	pair := func(o verbs.QPOptions) (io.Closer, error) {
		// 0 would mean a larger default
		o.SendWR, o.RecvWR, o.SendSGE, o.RecvSGE = max(o.SendWR, 1), max(o.RecvWR, 1), max(o.SendSGE, 1), max(o.RecvSGE, 1)
		return l.pd.CreateQP(l.cq, l.cq, o)
	}
	for name, c := range map[string]struct {
		shown, want int
		create      func(n int) (io.Closer, error)
	}{
		"max_sge of sends":      {l.d.MaxSGE, 3, func(n int) (io.Closer, error) { return pair(verbs.QPOptions{SendSGE: n}) }},
		"max_sge of receives":   {l.d.MaxSGE, 3, func(n int) (io.Closer, error) { return pair(verbs.QPOptions{RecvSGE: n}) }},
		"max_qp_wr of sends":    {l.d.MaxQPWR, 5, func(n int) (io.Closer, error) { return pair(verbs.QPOptions{SendWR: n}) }},
		"max_qp_wr of receives": {l.d.MaxQPWR, 5, func(n int) (io.Closer, error) { return pair(verbs.QPOptions{RecvWR: n}) }},
		"max_inline_data": {l.d.MaxInline, 32,
			func(n int) (io.Closer, error) { return pair(verbs.QPOptions{Inline: n}) }},
		"max_cqe": {l.d.MaxCQE, 7, func(n int) (io.Closer, error) { return l.x.CreateCQ(n, nil) }},
		"max_srq_wr": {l.d.MaxSRQWR, 6,
			func(n int) (io.Closer, error) { return l.pd.CreateSRQ(verbs.SRQOptions{RecvWR: n}) }},
		"max_srq_sge": {l.d.MaxSRQSGE, 4,
			func(n int) (io.Closer, error) { return l.pd.CreateSRQ(verbs.SRQOptions{RecvWR: 1, RecvSGE: n}) }},
	} {
		if c.shown != c.want {
			t.Errorf("%s is shown as %d, expected %d", name, c.shown, c.want)
		}
		if o, err := c.create(c.want); err != nil {
			t.Errorf("%s: %d: %v", name, c.want, err)
		} else {
			ok(t, o.Close())
		}
		if _, err := c.create(c.want + 1); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %d: %v, expected EINVAL", name, c.want+1, err)
		}
	}
}
