package control

// FirstRequestTime is for tests.
const FirstRequestTime = firstRequestTime

// MaxWaiting is for tests.
const MaxWaiting = maxWaiting
