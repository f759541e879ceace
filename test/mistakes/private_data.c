/* private_data.c - passes more private data to rdma_connect than InfiniBand carries. */
#include "mistakes_cm.h"

int main(int argc, char **argv)
{
	char data[100] = "too long";
	struct rdma_conn_param param = { .private_data = data, .private_data_len = sizeof(data) };

	rdma_connect(asking(argc > 1 ? argv[1] : NULL), &param);
	return 0;
}
