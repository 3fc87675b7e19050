package cloakroom.oldclient;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;

/** What the server answers to an upload. Jackson's default is to refuse a field that is not here: v0 may not add any. */
@JsonPropertyOrder({"resourceId", "resourceSecret"})
final class Ticket {
    public String resourceId;
    public String resourceSecret;
}
