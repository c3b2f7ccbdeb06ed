package readmodel

// Write writes changes that no fold has gathered, for the benchmark of writing.
var Write = write
