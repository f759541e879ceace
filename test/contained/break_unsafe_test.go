package contained_test

import (
	"reflect"
	"unsafe"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
)

// breakCarrier sets the pointers and interfaces of a carrier to nil, except those of its qp.Connection and its timers,
// which the clock has. mend sets them as they were.
func breakCarrier(c qp.Carrier) (mend func()) {
	var undo []func()
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		for i := range v.NumField() {
			f, kind := v.Field(i), v.Type().Field(i)
			switch {
			case f.Type() == reflect.TypeFor[qp.Connection]():
			case f.Type() == reflect.TypeFor[*clock.Timer]():
			case kind.Anonymous && f.Kind() == reflect.Struct:
				visit(f)
			case f.Kind() == reflect.Pointer || f.Kind() == reflect.Interface:
				f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
				was := reflect.New(f.Type()).Elem()
				was.Set(f)
				f.SetZero()
				undo = append(undo, func() { f.Set(was) })
			}
		}
	}
	visit(reflect.ValueOf(c).Elem())
	return func() {
		for _, u := range undo {
			u()
		}
	}
}
