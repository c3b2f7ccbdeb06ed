package output

import "fmt"

// Counted is a number with its noun, in the plural unless it is 1.
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// PartitionsText says how many partitions a topic has, and their numbers.
func PartitionsText(n int) string {
	if n == 1 {
		return "1 partition, 0"
	}
	return fmt.Sprintf("%s, 0 to %d", Counted(n, "partition"), n-1)
}
