// Package record notes which functions are entered and left, for package walk, which has
// each function of the core call it.
package record

// Step is a function that was entered, or left.
type Step struct {
	Package, File, Function string
	Left                    bool
}

var (
	on    bool
	steps []Step
)

// In notes that a function is entered, and returns what notes that it is left.
func In(pkg, file, function string) func() {
	if !on {
		return func() {}
	}
	steps = append(steps, Step{Package: pkg, File: file, Function: function})
	return func() { steps = append(steps, Step{Package: pkg, File: file, Function: function, Left: true}) }
}

// During returns the steps of fn, on this goroutine alone.
func During(fn func()) []Step {
	on, steps = true, nil
	fn()
	on = false
	return steps
}
