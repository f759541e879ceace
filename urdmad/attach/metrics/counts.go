package metrics

import (
	"reflect"
	"strings"

	"urdma/inspect"
)

// This file makes metric families from the counters of a snapshot, as described by their struct
// tags (package inspect).

var (
	countsOfPorts = counts(func(v *view, each func(*inspect.Port, ...string)) {
		for i := range v.Ports {
			each(&v.Ports[i], v.Ports[i].Name)
		}
	}, "port")
	countsOfTraffic = counts(func(v *view, each func(*inspect.Traffic, ...string)) {
		for i := range v.Ports {
			each(&v.traffic[i], v.Ports[i].Name)
		}
	}, "port")
	countsOfWork       = counts(func(v *view, each func(*inspect.Work, ...string)) { each(&v.work) })
	countsOfTotals     = counts(func(v *view, each func(*inspect.Totals, ...string)) { each(v.Totals) })
	countsOfHandshakes = counts(func(v *view, each func(*inspect.Handshakes, ...string)) { each(v.Handshakes) })
	countsOfLoop       = counts(func(v *view, each func(*inspect.Loop, ...string)) { each(v.Loop) })
)

// described is a counter as described by its tags.
type described struct {
	name, help   string
	label, value string // additional label; "": none
	index        []int
	per          float64 // number of counter units in one unit of the metric
}

// describe reads the tags of a counter; ok is false if metrics do not show it.
func describe(f reflect.StructField) (d described, ok bool) {
	name := f.Tag.Get("metric")
	if name == "" || name == "-" {
		return d, false
	}
	d = described{help: f.Tag.Get("help"), index: f.Index, per: 1}
	d.name, name, ok = strings.Cut(name, "{")
	if ok {
		d.label, d.value, _ = strings.Cut(strings.TrimSuffix(name, "}"), "=")
	}
	if json, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.HasSuffix(json, "_ns") {
		d.per = 1e9 // seconds
	}
	return d, true
}

// counts makes the families of all counters of a T. objects calls each with every T of a view,
// and with its label values.
func counts[T any](objects func(v *view, each func(*T, ...string)), labels ...string) (all []family) {
	byName := map[string][]described{}
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if d, ok := describe(f); ok {
			if byName[d.name] == nil {
				names = append(names, d.name)
			}
			byName[d.name] = append(byName[d.name], d)
		}
	}
	for _, name := range names {
		fields := byName[name]
		f := family{name: name, help: fields[0].help, kind: gauge, labels: labels}
		if strings.HasSuffix(name, "_total") {
			f.kind = counter
		}
		if fields[0].label != "" {
			f.labels = append(labels[:len(labels):len(labels)], fields[0].label)
		}
		f.values = func(v *view, add add) {
			objects(v, func(object *T, values ...string) {
				for _, d := range fields {
					d.add(reflect.ValueOf(object).Elem(), values, add)
				}
			})
		}
		all = append(all, f)
	}
	return all
}

func (d *described) add(object reflect.Value, values []string, add add) {
	if d.label != "" {
		values = append(values[:len(values):len(values)], d.value)
	}
	n := object.FieldByIndex(d.index)
	if n.CanUint() {
		add(float64(n.Uint())/d.per, values...)
	} else {
		add(float64(n.Int())/d.per, values...)
	}
}
