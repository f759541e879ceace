package dpdk

// rssKeyLen is the length of the key of the Toeplitz hash for IPv6 (Microsoft, "RSS hashing types").
const rssKeyLen = 40

// rssBits is the number of a port number's lowest bits that choose a queue.
const rssBits = 3

// rssKey makes the lowest rssBits bits of a device's hash equal to those of a UDP port number, in reverse
// order, independent of all other bits. So we know the queue for each port number. The hash is the exclusive
// or, over all set bits of the input, of the 32 bits of the key that begin at the position of that bit. The
// input is source and destination address, then source and destination port. Each set bit of the key thus
// copies one bit of the input to each bit of the hash.
func rssKey(source, ipv6 bool) (key [rssKeyLen]byte) {
	end := 8 * (4 + 4) // bits of the addresses
	if ipv6 {
		end = 8 * (16 + 16)
	}
	if end += 16; !source { // bits of the source port
		end += 16
	}
	bit := end - 1 + 31 - (rssBits - 1)
	key[bit/8] = 0x80 >> (bit % 8)
	return key
}

// rssTable returns the queue for each value of the hash's lowest bits, where of returns the queue for a port
// number. Devices repeat it to fill their redirection tables.
func rssTable(of func(number int) int) (queue [1 << rssBits]uint8) {
	for hash := range queue {
		if of == nil {
			break
		}
		number := 0
		for i := range rssBits {
			number |= hash >> i & 1 << (rssBits - 1 - i)
		}
		queue[hash] = uint8(of(number))
	}
	return queue
}
