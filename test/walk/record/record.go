// Package record records calls and returns of functions, for package walk, in which each function of the core calls
// it.
package record

// Step is the call of a function, or its return.
type Step struct {
	Package, File, Function string
	Left                    bool
}

var (
	on    bool
	steps []Step
)

// In records a call, and returns a function that records the return.
func In(pkg, file, function string) func() {
	if !on {
		return func() {}
	}
	steps = append(steps, Step{Package: pkg, File: file, Function: function})
	return func() { steps = append(steps, Step{Package: pkg, File: file, Function: function, Left: true}) }
}

// During returns the steps of fn, on this goroutine only.
func During(fn func()) []Step {
	on, steps = true, nil
	fn()
	on = false
	return steps
}
