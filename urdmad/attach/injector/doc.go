// Package injector has things go wrong as urdma inject asks for, and shows programs what
// specifications allow and hardware seldom does (urdma exec --strict). Package inject has the
// language.
//
// injector.go attaches it to package control. script.go carries statements out: event.go what
// happens at once, rules.go what goes wrong from then on, wire.go what becomes of packets.
// answer.go decides by those rules what becomes of a client's work, requests and connections,
// strict.go what strictness does to them, and late.go keeps events back. shown.go tells
// snapshots of the rules.
package injector
