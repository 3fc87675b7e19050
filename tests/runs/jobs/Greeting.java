package cloakroom.runs;

/** In a jar of its own. */
public final class Greeting {
    private Greeting() {}

    public static String of(String whom) {
        return "hello " + whom;
    }
}
