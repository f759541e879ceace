package nldev

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/inspect"
	"urdma/urdmad/control/account"
)

// sample is a machine with two devices, the second of which has two ports.
func sample(t testing.TB) *Config {
	dir := t.TempDir()
	for path, text := range map[string]string{"urdma0/node_type": "4: RNIC", "urdma0/ports/1/state": "4: ACTIVE",
		"hca0/node_type": "1: CA", "hca0/node_guid": "0102:0304:0506:0708", "hca0/ports/1/link_layer": "InfiniBand",
		"hca0/ports/2/state": "1: DOWN", "hca0/ports/2/hw_counters/rx_bytes": "77"} {
		path = filepath.Join(dir, "class/infiniband", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &inspect.Snapshot{Ports: []inspect.Port{{Name: "urdma0", Device: "urdma0", Number: 1},
		{Name: "hca0/1", Device: "hca0", Number: 1}, {Name: "hca0/2", Device: "hca0", Number: 2}},
		QPs:         []inspect.QP{{Object: inspect.Object{Device: "hca0/2", PID: 9}, QPN: 5, Type: "UD", State: "RTS"}},
		CQs:         []inspect.CQ{{Object: inspect.Object{Device: "hca0", Handle: 3}, Depth: 10}},
		Domains:     []inspect.Domain{{Object: inspect.Object{Device: "urdma0"}, Number: 1}},
		Connections: []inspect.Connection{{Object: inspect.Object{Device: "hca0/2", Handle: 6}, QPN: 5, Local: "[fe80::1]:80"}}}
	return &Config{Devices: func() []string { return []string{"urdma0", "hca0"} }, Sysfs: dir,
		Snapshot: func(context.Context, *account.Owner) (*inspect.Snapshot, error) { return s, nil }}
}

// ask sends a request, and returns the types and attributes of the answers; an error as its number.
func ask(t *testing.T, c *Config, command, flags uint16, a attributes) (answers []map[uint16][]byte, number unix.Errno) {
	t.Helper()
	var r request
	for _, m := range c.answer(r.message(client<<10|command, flags, a), someone()) {
		switch body := m[unix.SizeofNlMsghdr:]; native.Uint16(m[4:]) {
		case unix.NLMSG_ERROR:
			number = unix.Errno(-native.Uint32(body))
		case client<<10 | command:
			has, err := parseAttributes(body)
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, has)
		}
	}
	return answers, number
}

func someone() *account.Account {
	a := new(account.Account)
	a.Join(new(account.Accounts))
	return a
}

// inner returns the attributes of one entry of a table.
func inner(t *testing.T, has map[uint16][]byte, table, entry uint16) map[uint16][]byte {
	t.Helper()
	list, err := parseAttributes(has[table])
	if err != nil {
		t.Fatal(err)
	}
	if list, err = parseAttributes(list[entry]); err != nil {
		t.Fatal(err)
	}
	return list
}

func of(device uint32) attributes { return attributes(nil).u32(attrDevIndex, device) }

func TestAnswers(t *testing.T) {
	c := sample(t)
	all, _ := ask(t, c, cmdGet, unix.NLM_F_DUMP, nil)
	if len(all) != 2 || string(all[1][attrDevName]) != "hca0\x00" || native.Uint32(all[1][attrPortIndex]) != 2 ||
		native.Uint64(all[1][attrNodeGUID]) != 0x0102030405060708 || string(all[0][attrProtocol]) != "iw\x00" {
		t.Errorf("devices: %v", all)
	}
	ports, _ := ask(t, c, cmdPortGet, unix.NLM_F_DUMP, of(1))
	if len(ports) != 2 || ports[0][attrState][0] != 0 || ports[1][attrState][0] != 1 {
		t.Errorf("ports of hca0: %v", ports)
	}
	count, _ := ask(t, c, cmdStatGet, 0, of(1).u32(attrPortIndex, 2))
	if len(count) != 1 || native.Uint64(inner(t, count[0], attrHWCounters, attrHWCounter)[attrHWCounterIs]) != 77 {
		t.Errorf("counters: %v", count)
	}
	qp, _ := ask(t, c, 10, unix.NLM_F_DUMP, of(1))
	if len(qp) != 1 {
		t.Fatalf("queue pairs of hca0: %v", qp)
	}
	if q := inner(t, qp[0], attrQP, attrQPEntry); native.Uint32(q[attrQPN]) != 5 || q[attrType][0] != 4 ||
		q[attrObjectState][0] != 3 || native.Uint32(q[attrPID]) != 9 || native.Uint32(q[attrPortIndex]) != 2 {
		t.Errorf("queue pair: %v", q)
	}
	id, _ := ask(t, c, 11, 0, of(1).u32(attrIDNumber, 6))
	if len(id) != 1 || native.Uint32(id[0][attrPortSpace]) != portsUDP || native.Uint16(id[0][attrLocal]) != unix.AF_INET6 ||
		id[0][attrLocal][3] != 80 || id[0][attrPeer] != nil {
		t.Errorf("id: %v", id)
	}
}

// TestShownNames: a program may know devices by other names than a snapshot does.
func TestShownNames(t *testing.T) {
	c := sample(t)
	c.names = []string{"mlx5_0", "mlx5_1"}
	if err := os.Symlink("hca0", filepath.Join(c.Sysfs, "class/infiniband/mlx5_1")); err != nil {
		t.Fatal(err)
	}
	qp, _ := ask(t, c, 10, unix.NLM_F_DUMP, of(1))
	if len(qp) != 1 || string(qp[0][attrDevName]) != "mlx5_1\x00" {
		t.Errorf("queue pairs: %v", qp)
	}
	if ports, _ := ask(t, c, cmdPortGet, unix.NLM_F_DUMP, of(1)); len(ports) != 2 {
		t.Errorf("ports: %v", ports)
	}
}

// TestRefusals: each request gets an error with the errno of the kernel's nldev, or an empty list.
func TestRefusals(t *testing.T) {
	const set, newLink, contexts = 2, 3, 22
	c := sample(t)
	for _, q := range []struct {
		what           string
		command, flags uint16
		a              attributes
		want           unix.Errno
	}{
		{"a device that is not there", cmdGet, 0, of(7), unix.EINVAL},
		{"no device named", cmdPortGet, 0, nil, unix.EINVAL},
		{"a port that is not there", cmdPortGet, 0, of(0).u32(attrPortIndex, 2), unix.EINVAL},
		{"an object that is not there", 10, 0, of(1).u32(attrQPN, 6), unix.ENOENT},
		{"the object of another device", 10, 0, of(0).u32(attrQPN, 5), unix.ENOENT},
		{"a change", set, 0, of(0).text(attrDevName, "x"), unix.EOPNOTSUPP},
		{"a new device", newLink, 0, nil, unix.EOPNOTSUPP},
		{"objects that are not listed", contexts, unix.NLM_F_DUMP, of(0), unix.EOPNOTSUPP},
		{"queue pairs of another port", 10, unix.NLM_F_DUMP, of(1).u32(attrPortIndex, 1), 0},
		{"counters of queue pairs", cmdStatGet, unix.NLM_F_DUMP, of(0).u32(attrStatRes, 19), 0},
	} {
		if list, got := ask(t, c, q.command, q.flags, q.a); got != q.want || len(list) > 1 {
			t.Errorf("%s: %v, error %v; expected %v", q.what, list, got, q.want)
		}
	}
}

// TestMalformed: whatever a program sends, the answers are whole netlink messages.
func TestMalformed(t *testing.T) {
	c, random := sample(t), rand.New(rand.NewPCG(1, 2))
	commands := []uint16{cmdGet, cmdPortGet, cmdSysGet, cmdResGet, cmdStatGet, 10, 11, 12, 13, 14, 23}
	for i := range 20000 {
		var r request
		b := r.message(client<<10|commands[i%len(commands)], uint16(random.Uint32()), of(uint32(i%3)).u32(attrPortIndex, 1))
		for range random.IntN(4) {
			b[random.IntN(len(b))] = byte(random.Uint32())
		}
		b = b[:random.IntN(len(b)+1)]
		answers := c.answer(b, someone())
		if len(answers) == 0 {
			t.Fatalf("%x: no answer", b)
		}
		for _, m := range answers {
			if len(m) < unix.SizeofNlMsghdr || int(native.Uint32(m)) != len(m) || len(m) > 4096 {
				t.Fatalf("%x is answered by a message of %d bytes: %x", b, len(m), m)
			}
		}
	}
}
