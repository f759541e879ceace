package wire

import (
	"bytes"
	oldrand "math/rand" // testing/quick demands it; no number is drawn from it
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/quick"
)

// codec is the interface of every fixed-length message.
type codec interface {
	Parse(b []byte) (int, error)
	Put(b []byte) int
}

// roundTrip writes v, parses it into a new value of its type and compares.
func roundTrip(t *testing.T, v codec, size int) {
	t.Helper()
	b := bytes.Repeat([]byte{0xa5}, size+1)
	if n := v.Put(b[:size]); n != size {
		t.Fatalf("%+v: Put answers %d, want %d", v, n, size)
	}
	if b[size] != 0xa5 {
		t.Fatalf("%+v: Put wrote past its length", v)
	}
	got := reflect.New(reflect.TypeOf(v).Elem()).Interface().(codec)
	if n, err := got.Parse(b[:size]); n != size || err != nil {
		t.Fatalf("%+v: Parse answers %d %v", v, n, err)
	}
	if !reflect.DeepEqual(got, v) {
		t.Fatalf("got %+v\nwant %+v", got, v)
	}
}

// quickCheck runs a property on values that testing/quick draws from our seed.
func quickCheck(t *testing.T, property any) {
	t.Helper()
	r := newRand(t)
	cfg := &quick.Config{MaxCount: 2000}
	cfg.Values = func(args []reflect.Value, _ *oldrand.Rand) {
		for i := range args {
			args[i] = randValue(r, reflect.TypeOf(property).In(i))
		}
	}
	if err := quick.Check(property, cfg); err != nil {
		t.Error(err)
	}
}

// randValue fills every exported field of a struct of numbers and arrays.
func randValue(r *rand.Rand, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	fillRandom(r, v)
	return v
}

func fillRandom(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillRandom(r, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fillRandom(r, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := r.Uint64()
		if r.IntN(4) == 0 { // edge values more often than chance gives
			n = []uint64{0, 1, ^uint64(0), 1 << 31, 1<<31 - 1}[r.IntN(5)]
		}
		v.SetUint(n & (1<<v.Type().Bits() - 1))
	}
}

func TestRoundTripBodies(t *testing.T) {
	quickCheck(t, func(v ReadRequest) bool { roundTrip(t, &v, ReadRequestLen); return true })
	quickCheck(t, func(v AtomicResponse) bool { roundTrip(t, &v, AtomicResponseLen); return true })
	quickCheck(t, func(v Immediate) bool { roundTrip(t, &v, ImmediateLen); return true })
	quickCheck(t, func(v ARP) bool { roundTrip(t, &v, ARPLen); return true })
	quickCheck(t, func(v AtomicRequest) bool {
		v.Opcode %= AtomicCmpSwap + 1
		roundTrip(t, &v, AtomicRequestLen)
		return true
	})
	quickCheck(t, func(v ICMPEcho) bool {
		v.Type &= ICMPEchoRequest
		roundTrip(t, &v, ICMPEchoLen)
		return true
	})
}

func TestRoundTripDDP(t *testing.T) {
	quickCheck(t, func(v DDP) bool {
		v.Op %= OpAtomicResponse + 1
		size := TaggedLen
		if v.Tagged = opcodes[v.Op&15].tagged; v.Tagged {
			v.QN, v.MSN, v.MO = 0, 0, 0
		} else {
			size, v.TO, v.QN = UntaggedLen, 0, v.Op.Queue()
			if opcodes[v.Op].single {
				v.Last, v.MO = true, 0
			}
		}
		roundTrip(t, &v, size)
		return true
	})
}

func TestRoundTripTRP(t *testing.T) {
	quickCheck(t, func(v TRP) bool {
		v.Op %= OpSack + 1
		v.Credits &= MaxWideCredits
		v.Flags &^= upperCredits
		if v.Op.IsControl() {
			v.Flags, v.Cookie, v.Credits = 0, 0, v.Credits&MaxCredits
		}
		b := make([]byte, TRPExtLen)
		n := v.Put(b)
		var got TRP
		m, err := got.Parse(b[:n])
		return err == nil && m == n && got == v
	})
}

func TestRoundTripConnect(t *testing.T) {
	r := newRand(t)
	for range 2000 {
		v := TRPConnect{IRD: uint16(r.Uint32()), ORD: uint16(r.Uint32()), PrivateData: randBytes(r, r.IntN(MaxPrivateData+1))}
		if v.HasExt = r.IntN(2) == 0; v.HasExt {
			fillRandom(r, reflect.ValueOf(&v.Ext).Elem())
			if v.Ext.Target == 0 || r.IntN(2) == 0 { // not by number: the block ends before these fields
				v.Ext.Target, v.Ext.Echo, v.Ext.MinRNRTimer, v.Ext.PathMTU, v.Ext.RQPSN = 0, 0, 0, 0, 0
			}
			v.Ext.RQPSN &= 0xffffff
		}
		b := make([]byte, v.Len())
		if n, err := v.Put(b); n != len(b) || err != nil {
			t.Fatalf("Put answers %d %v", n, err)
		}
		var got TRPConnect
		if err := got.Parse(b); err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, v)
		}
	}
}

func TestRoundTripSack(t *testing.T) {
	r := newRand(t)
	for range 2000 {
		runs := make([]SackRun, r.IntN(MaxSackRuns+1))
		for i := range runs {
			first := PSN(r.Uint32())
			runs[i] = SackRun{First: first, End: first.Add(1 + uint32(r.IntN(1<<31-1)))}
		}
		b := make([]byte, PutSackRuns(make([]byte, 256), runs))
		PutSackRuns(b, runs)
		got := make([]SackRun, MaxSackRuns)
		n, err := ParseSackRuns(got, b)
		if err != nil || !reflect.DeepEqual(got[:n], runs) {
			t.Fatalf("%v\n got %v\nwant %v", err, got[:n], runs)
		}
	}
}
