package control

// LimitSettings are the settings under limits that bound a client.
func LimitSettings() (out []string) {
	for _, k := range kinds {
		if k.setting != "" {
			out = append(out, k.setting)
		}
	}
	return out
}

// FirstRequestTime is for tests.
const FirstRequestTime = firstRequestTime

// MaxWaiting is for tests.
const MaxWaiting = maxWaiting
