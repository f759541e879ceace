// Package injector causes the faults that urdma inject asks for. It also gives programs behaviour
// that specifications allow and hardware seldom shows (urdma exec --strict). Package inject has
// the language.
//
// injector.go attaches the feature to package control. script.go carries out statements: event.go
// raises events at once, rules.go keeps rules for later events, wire.go changes packets.
// answer.go applies rules to a client's work, requests and connections, strict.go has the effects
// of strictness, late.go delays events. shown.go adds the rules to snapshots.
package injector
