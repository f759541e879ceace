// faults.cc - tests of error handling with GoogleTest.
#include <gtest/gtest.h>
#include <urdma_inject.h>

#include "../c/loopback.h"

class Faults : public testing::Test {
protected:
	void SetUp() override
	{
		if (urdma_inject("clear") == -EOPNOTSUPP)
			GTEST_SKIP() << "this needs urdma";
		ASSERT_EQ(loopback_open(&l), 0);
	}

	void TearDown() override
	{
		urdma_inject("clear"); // nothing is left for the next test
		loopback_close(&l);
	}

	loopback l{};
};

TEST_F(Faults, ThirdWriteFails)
{
	int64_t rule = urdma_inject("send status=RETRY_EXC_ERR nth=3 qp=%x", l.qp->qp_num);

	ASSERT_GT(rule, 0);
	EXPECT_EQ(loopback_write(&l, 64), IBV_WC_SUCCESS);
	EXPECT_EQ(loopback_write(&l, 64), IBV_WC_SUCCESS);
	EXPECT_EQ(loopback_write(&l, 64), IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(urdma_inject("hits %u", static_cast<unsigned>(rule)), 1);
}

TEST_F(Faults, CutAfter1MiB)
{
	ASSERT_GT(urdma_inject("send status=RETRY_EXC_ERR bytes=1MiB qp=%x", l.qp->qp_num), 0);
	EXPECT_EQ(loopback_write(&l, 1 << 20), IBV_WC_SUCCESS);
	EXPECT_EQ(loopback_write(&l, 1), IBV_WC_RETRY_EXC_ERR);
}
