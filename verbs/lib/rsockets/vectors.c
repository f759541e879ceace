/* vectors.c - the buffers that a program passes for sending and receiving. */
#include <string.h>
#include <sys/uio.h>

#include "rsockets.h"

size_t rs_move(struct rs_cursor *c, uint8_t *flat, size_t n, bool out)
{
	size_t done = 0, piece;
	uint8_t *at;

	while (c->left && done < n) {
		at = (uint8_t *)c->iov->iov_base + c->offset;
		piece = c->iov->iov_len - c->offset;
		if (piece > n - done)
			piece = n - done;
		if (piece && out)
			memcpy(at, flat + done, piece);
		else if (piece)
			memcpy(flat + done, at, piece);
		done += piece;
		c->offset += piece;
		if (c->offset == c->iov->iov_len) {
			c->iov++;
			c->left--;
			c->offset = 0;
		}
	}
	return done;
}

ssize_t rs_length(const struct iovec *iov, int count)
{
	size_t total = 0;

	if (count < 0)
		return rs_fail(EINVAL);
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > SIZE_MAX / 2 - total)
			return rs_fail(EINVAL);
		total += iov[i].iov_len;
	}
	return (ssize_t)total;
}
