package main

type demoCmd struct{}
