package cm

// MaxSharing is for tests.
const MaxSharing = maxSharing
