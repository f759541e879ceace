package control

// FirstRequestTime is for tests.
const FirstRequestTime = firstRequestTime

// EndPatience is for tests.
const EndPatience = endPatience

// MaxWaiting is for tests.
const MaxWaiting = maxWaiting
