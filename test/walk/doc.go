// Package walk shows the way of a message through the core: which packages it visits, one
// behind the other, on each wire. docs/design/walks.md has the ways, and the test holds it
// to them.
//
// The test builds the core with a line in each function that notes that it was entered
// (go build -overlay), and has two engines exchange a message.
package walk
