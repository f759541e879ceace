package verbs_test

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"urdma/verbs"
)

// limitsTest is a client that makes as much of everything as its device says.
type limitsTest struct {
	t  *testing.T
	d  *verbs.Device
	x  *verbs.Context
	pd *verbs.PD
	cq *verbs.CQ
}

// reach makes most objects, and closes them.
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

// limits has an entry for each Max of verbs.Device.
var limits = map[string]func(l *limitsTest){
	"MaxQP": func(l *limitsTest) {
		reach(l, l.d.MaxQP, func() (*verbs.QP, error) { return l.pd.CreateQP(l.cq, l.cq, verbs.QPOptions{SendWR: 1, RecvWR: 1}) })
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
	// Of connections and messages, which are not made here.
	"MaxReads": nil, "MaxMessage": nil, "MaxDatagram": nil,
}

// TestLimits: one client can have what its device says that there is at most.
func TestLimits(t *testing.T) {
	config := filepath.Join(t.TempDir(), "urdma.json")
	text := `{"ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24"}], "limits": {"registered_bytes": 1073741824}}`
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
