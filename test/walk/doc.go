// Package walk records the path of a message through the core: the packages that it visits, in order, on each wire.
// The test compares the paths with docs/design/walks.md.
//
// The test builds the core with an additional line in each function that records the call (go build -overlay), and
// lets two engines exchange a message.
package walk
