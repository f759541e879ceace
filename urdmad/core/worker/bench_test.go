package worker

import "testing"

func BenchmarkNow(b *testing.B) {
	var sum Time
	for b.Loop() {
		sum += Now()
	}
}

func BenchmarkCurrentCore(b *testing.B) {
	for b.Loop() {
		currentCore()
	}
}

func BenchmarkYieldAlone(b *testing.B) {
	var th thread
	for b.Loop() {
		th.yield()
	}
}
