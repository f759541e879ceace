package dpdk

// rssKeyLen is the length of the key of the Toeplitz hash for IPv6 (Microsoft, "RSS hashing types").
const rssKeyLen = 40

// rssBits are the bits of a port number that choose a queue, the lowest.
const rssBits = 3

// rssKey has the lowest rssBits bits of a card's hash be those of a UDP port number, in reverse
// order, and nothing else: so we know which queue a number means. The hash is the exclusive or of the
// 32 bits of the key that begin at each set bit of what is hashed: source and destination address, then
// source and destination port. One set bit of the key reaches each bit of the hash from one bit
// of that.
func rssKey(source, ipv6 bool) (key [rssKeyLen]byte) {
	end := 8 * (4 + 4) // of the addresses
	if ipv6 {
		end = 8 * (16 + 16)
	}
	if end += 16; !source { // of the port number
		end += 16
	}
	bit := end - 1 + 31 - (rssBits - 1)
	key[bit/8] = 0x80 >> (bit % 8)
	return key
}

// rssTable is the queue for each value of the lowest bits of the hash, if of says which one a
// port number is for. Cards repeat it through their redirection tables.
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
