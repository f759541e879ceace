package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"urdma/bench/results"
	"urdma/test/lab"
)

// registered is the size of the memory that bench/registration uses, twice: once to register, once as the target of
// the copy or as untouched memory.
const registered = 1 << 30

// registrationLines are the lines that it prints, in the order of the measure's figures.
var registrationLines = []struct{ name, id, title, unit string }{
	{"page.reg", "reg.4k", "ibv_reg_mr of 4 KiB", "µs"},
	{"page.dereg", "dereg.4k", "ibv_dereg_mr of 4 KiB", "µs"},
	{"page.again", "reg.4k.again", "ibv_reg_mr of the same 4 KiB again", "µs"},
	{"page.pin", "pin.4k", "mlock of 4 KiB that was never touched, and one copy of 4 KiB", "µs"},
	{"page.unlock", "unlock.4k", "munlock of it", "µs"},
	{"mib.reg", "reg.1m", "ibv_reg_mr of 1 MiB that was written to", "µs"},
	{"mib.dereg", "dereg.1m", "ibv_dereg_mr of it", "µs"},
	{"mib.pin", "pin.1m", "mlock of 1 MiB that was never touched, and one copy of 1 MiB", "µs"},
	{"mib.unlock", "unlock.1m", "munlock of it", "µs"},
	{"all.reg", "reg.1g", "ibv_reg_mr of 1 GiB that was written to", "ms"},
	{"all.dereg", "dereg.1g", "ibv_dereg_mr of it", "ms"},
	{"all.again", "reg.1g.again", "ibv_reg_mr of the same 1 GiB again", "µs"},
	{"all.copy", "copy.1g", "one thread copying 1 GiB once", "ms"},
	{"all.lock", "lock.1g", "mlock of 1 GiB that was never touched", "ms"},
	{"all.pin", "pin.1g", "the same, and one copy of 1 GiB", "ms"},
	{"all.unlock", "unlock.1g", "munlock of it", "ms"},
	{"fresh.reg", "reg.1g.fresh", "ibv_reg_mr of 1 GiB that was never touched", "ms"},
	{"fresh.enter", "enter.1g", "making 1 GiB of private memory exist (MADV_POPULATE_WRITE)", "ms"},
	{"born.alloc", "alloc.1g", "urdma_alloc of 1 GiB", "ms"},
	{"born.reg", "reg.1g.born", "ibv_reg_mr of it, written to", "ms"},
	{"born.dereg", "dereg.1g.born", "ibv_dereg_mr of it", "ms"},
}

func registrationMeasure() measure {
	m := measure{name: "registration: 4 KiB, 1 MiB and 1 GiB", run: registration, rounds: 3}
	for _, l := range registrationLines {
		m.figures = append(m.figures, results.Figure{ID: l.id, Title: l.title, Unit: l.unit, Better: results.Lower})
	}
	return m
}

func registration(b *bench) ([]float64, error) {
	program := filepath.Join(b.Build, "registration")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("bench/registration is not built (make -C bench/registration)")
	}
	if free := kilobytes("/proc/meminfo", "MemAvailable") << 10; free < 3*registered {
		return nil, fmt.Errorf("%d MiB of memory are available, 3 GiB are needed", free>>20)
	}
	hosts, err := b.places.join(lab.Loopback)
	if err != nil {
		return nil, err
	}
	// The host's user has no access to some directories.
	own := filepath.Join(hosts.a.Directory(), "registration")
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(own, text, 0o755)
	}
	if err != nil {
		return nil, err
	}
	out, err := hosts.a.Run(time.Minute, own, strconv.Itoa(registered))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.ReplaceAll(strings.TrimSpace(out), "\n", "; "), err)
	}
	return parseRegistration(out)
}

// parseRegistration reads lines of a name and a number.
func parseRegistration(out string) ([]float64, error) {
	found := map[string]float64{}
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), " "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				found[name] = v
			}
		}
	}
	var values []float64
	for _, l := range registrationLines {
		v, ok := found[l.name]
		if !ok {
			return nil, fmt.Errorf("bench/registration printed no %s:\n%s", l.name, lab.Tail(out, 10))
		}
		values = append(values, v)
	}
	return values, nil
}
