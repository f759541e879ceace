package lab

import "testing"

func TestParsePerftest(t *testing.T) {
	rows, err := ParsePerftest(`---------------------------------------------------------------------------------------
                    Send Latency Test
 local address: LID 0000 QPN 0x0000 PSN 0x000000
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 2       1000          4.12           98.32        4.55     	       4.71        	1.20		6.01    		98.32  
 4       1000          4.15           9.01         4.60     	       4.70        	0.80		6.11    		9.01   
 8       1000          inf            inf          inf      	       inf         	-nan   		inf     		inf    
---------------------------------------------------------------------------------------
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[1].Bytes != 4 || rows[0].Iterations != 1000 ||
		rows[0].Values[LatencyTypical] != 4.55 || rows[0].Values[LatencyAverage] != 4.71 ||
		rows[1].Values[LatencyPercent99] != 6.11 {
		t.Fatalf("got %+v", rows)
	}
	if _, err := ParsePerftest("Couldn't connect\n"); err == nil {
		t.Fatal("no table, and no error")
	}
}

// TestParseNaN: the row remains if perftest could not compute a deviation.
func TestParseNaN(t *testing.T) {
	rows, err := ParsePerftest(" 8388608 100 271.25 155963.21 1983.10 3863.98 -nan 155963.21 155963.21\n")
	if err != nil || len(rows) != 1 || rows[0].Bytes != 8388608 || rows[0].Values[LatencyTypical] != 1983.10 {
		t.Fatalf("%+v, %v", rows, err)
	}
}
