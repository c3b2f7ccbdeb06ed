package output

import "fmt"

// Counted returns a number and a noun, for example "3 rows". The noun is in the plural unless the
// number is 1.
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// PartitionsText returns the number of partitions of a topic, and the numbers of these partitions.
func PartitionsText(n int) string {
	if n == 1 {
		return "1 partition, 0"
	}
	return fmt.Sprintf("%s, 0 to %d", Counted(n, "partition"), n-1)
}
